// /alarms and its kin, as metric-proxy's clients use them.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <future>

#include "tests/unit/web_fake_source.h"
#include "web/router.h"

namespace sonde::web::web_alarms_test {
namespace {

namespace json = boost::json;

constexpr Nanos kNow = 1'800'000'000 * kSecond;

// The running step has one series, whose value each test chooses.
class AlarmSource : public FakeSource {
 public:
  AlarmSource() : FakeSource(kNow) {
    series_[0].metric.name = "node_load1";
    series_[0].metric.help = "Load average over one minute.";
    series_[0].metric.reduction = Reduction::kMean;
    series_[0].tags.Set("zone", "a");
  }
  void Tick(double value) {
    std::vector<Reduced> row(1);
    row[0].Add(value, {1, 7});
    row[0].Add(value / 2, {0, 3});
    std::vector<alarms::Event> events;
    evaluator_.Evaluate(series_, {time_ += kSecond, &row, true}, events);
  }
  // As if it had run on very many nodes.
  void Enlarge() { large_ = true; }
  void GetProfile(const JobStep& id, ProfileCallback callback) const override {
    FakeSource::GetProfile(id, [&](Result<Profile> profile) {
      if (profile.ok() && large_) profile->job.expected_tasks = 1'000'000;
      callback(std::move(profile));
    });
  }
  Result<std::vector<AlarmState>> Alarms(const JobStep& id) const override {
    if (id.ToString() != "4712.0") return FakeSource::Alarms(id);
    std::vector<AlarmState> all;
    for (auto& state : evaluator_.States()) {
      std::string host = state.owner.node == 1 ? "n2" : "";
      all.push_back({std::move(state), std::move(host)});
    }
    return all;
  }
  Status AddAlarm(const JobStep& id, const alarms::Rule& rule) const override {
    return id.ToString() == "4712.0" ? evaluator_.Add(rule) : FakeSource::AddAlarm(id, rule);
  }
  Status RemoveAlarm(const JobStep& id, const std::string& name) const override {
    if (id.ToString() != "4712.0") return FakeSource::RemoveAlarm(id, name);
    return evaluator_.Remove(name) ? Status() : Status(Code::kNotFound, "none of that name");
  }

 private:
  mutable alarms::Evaluator evaluator_{kSecond};
  std::vector<Series> series_ = std::vector<Series>(1);
  bool large_ = false;
  Nanos time_ = kNow;
};

class WebAlarms : public testing::Test {
 protected:
  Response Call(std::string_view target, const char* body = nullptr) {
    Request request;
    EXPECT_TRUE(ParseTarget(target, request).ok());
    if (body != nullptr) {
      request.method = Method::kPost;
      request.content_type = "application/json";
      request.body = body;
    }
    std::promise<Response> promise;
    Dispatch(Context(*source_, &Clock::System(), nullptr), request,
             [&](Response response) { promise.set_value(std::move(response)); });
    return promise.get_future().get();
  }
  json::value Json(std::string_view target, const char* body = nullptr, int status = 200) {
    const Response response = Call(target, body);
    EXPECT_EQ(response.status, status) << response.body;
    return json::parse(response.body);
  }
  std::string Error(std::string_view target, const char* body, int status) {
    return std::string(Json(target, body, status).at("error").at("message").as_string());
  }

  std::shared_ptr<AlarmSource> source_ = std::make_shared<AlarmSource>();
};

TEST_F(WebAlarms, AddedAsMetricProxysDocumentSays) {
  const json::value added = Json(
      "/alarms/add",
      R"({"name": "My Alarm", "target": "main", "metric": "node_load1", "operation": ">", "value": 33})");
  EXPECT_EQ(added.at("success"), true);
  EXPECT_EQ(added.at("job"), "4712.0");
  Json(
      "/alarms/add",
      R"({"name": "My Other Alarm", "target": "main", "metric": "node_load1", "operation": "<", "value": 33})");
  source_->Tick(60);
  const json::value list = Json("/alarms/list");
  ASSERT_EQ(list.at("main").as_array().size(), 2u);
  const json::object& first = list.at("main").at(0).as_object();
  EXPECT_EQ(first.at("name"), "My Alarm");
  EXPECT_EQ(first.at("metric"), "node_load1{zone=\"a\"}");
  EXPECT_EQ(first.at("operator"), json::parse(R"({"More": 33})"));
  EXPECT_EQ(first.at("current"), 45);
  EXPECT_EQ(first.at("active"), true);
  EXPECT_EQ(first.at("pretty"),
            "My Alarm : node_load1 (Load average over one minute.) = 45 GAUGE > 33");
  EXPECT_EQ(list.at("main").at(1).at("operator"), json::parse(R"({"Less": 33})"));
  const json::value active = Json("/alarms");
  ASSERT_EQ(active.at("main").as_array().size(), 1u);
  EXPECT_EQ(active.at("main").at(0).at("name"), "My Alarm");
}

TEST_F(WebAlarms, ATargetMayBeANode) {
  const json::value added = Json(
      "/alarms/add",
      R"({"name": "n2", "target": "Node: n2", "metric": "node_load1{zone=\"a\"}", "operation": ">", "value": 33})");
  EXPECT_EQ(added.at("job"), "4712.0");
  Json("/alarms/add", R"({"name": "all", "metric": "node_load1", "operation": ">", "value": 33})");
  const json::value list = Json("/alarms/list");
  ASSERT_EQ(list.at("Node: n2").as_array().size(), 1u);
  EXPECT_EQ(list.at("Node: n2").at(0).at("rule"), "node_load1{host=\"n2\",zone=\"a\"} > 33");
  ASSERT_EQ(list.at("main").as_array().size(), 1u);
  EXPECT_EQ(list.at("main").at(0).at("name"), "all");
  EXPECT_EQ(Json("/alarms/del?targetjob=Node:%20n2&name=n2").at("success"), true);
  EXPECT_FALSE(Json("/alarms/list").as_object().contains("Node: n2"));
  Error(
      "/alarms/add",
      R"({"name": "n9", "target": "Node: n9", "metric": "node_load1", "operation": ">", "value": 33})",
      404);
}

TEST_F(WebAlarms, AnUnknownMetricIsRefusedUnlessARuleNamesIt) {
  EXPECT_NE(Error("/alarms/add",
                  R"({"name": "a", "metric": "no_such", "operation": ">", "value": 33})", 400)
                .find("no metric 'no_such'"),
            std::string::npos);
  Json("/alarms/add", R"({"name": "a", "rule": "no_such > 33"})");
}

TEST_F(WebAlarms, WhoseValueItIs) {
  Json("/alarms/add",
       R"({"name": "any", "rule": "node_load1 any > 1 critical message \"at {value}\""})");
  source_->Tick(60);
  const json::value alarm = Json("/alarms?job=4712.0").at("4712.0").at(0);
  EXPECT_EQ(alarm.at("node"), "n2");
  EXPECT_EQ(alarm.at("rank"), 7);
  EXPECT_EQ(alarm.at("severity"), "critical");
  EXPECT_EQ(alarm.at("text"), "at 60");
  EXPECT_EQ(alarm.at("rule"), "node_load1 any > 1 critical message \"at {value}\"");
  EXPECT_EQ(alarm.at("since"), kNow + kSecond);
}

TEST_F(WebAlarms, AddedByParametersAndDeletedBothWays) {
  Json("/alarms/add?name=a&metric=node_load1%7Bzone%3D%22a%22%7D&operation=%3D&value=4.5");
  Json("/alarms/add?name=b&rule=node_load1+%3E+1");
  source_->Tick(1);
  EXPECT_EQ(Json("/alarms/list").at("main").at(0).at("operator"), json::parse(R"({"Equal": 4.5})"));
  EXPECT_EQ(Json("/alarms/del?targetjob=main&name=a").at("success"), true);
  EXPECT_EQ(Json("/alarms/del", R"({"target": "main", "name": "b"})").at("name"), "b");
  EXPECT_TRUE(Json("/alarms/list").at("main").as_array().empty());
}

TEST_F(WebAlarms, ARuleWithoutASeriesIsListed) {
  Json("/alarms/add", R"({"name": "a", "rule": "nothing > 1"})");
  const json::value alarm = Json("/alarms/list").at("main").at(0);
  EXPECT_EQ(alarm.at("active"), false);
  EXPECT_TRUE(alarm.at("current").is_null());
}

TEST_F(WebAlarms, MistakesAreNamed) {
  EXPECT_NE(Error("/alarms/add", "{}", 400).find("expected {\"name\""), std::string::npos);
  EXPECT_NE(Error("/alarms/add", "[]", 400).find("must be a JSON object"), std::string::npos);
  EXPECT_NE(Error("/alarms/add", R"({"name": [], "rule": "x > 1"})", 400).find("name: expected"),
            std::string::npos);
  EXPECT_NE(Error("/alarms/add", R"({"name": "a:b", "rule": "x > 1"})", 400).find("is no name"),
            std::string::npos);
  EXPECT_EQ(
      Error("/alarms/add", R"({"name": "a", "metric": "x", "operation": "~", "value": 1})", 400)
          .find("alarm a: expected a comparison"),
      0u);
  Json("/alarms/add", R"({"name": "a", "rule": "x > 1"})");
  EXPECT_EQ(Error("/alarms/add", R"({"name": "a", "rule": "x > 1"})", 400),
            "there is an alarm 'a' already");
  Error("/alarms/del", R"({"name": "b"})", 404);
  Error("/alarms/del", R"({})", 400);
}

TEST_F(WebAlarms, StepsThatDoNotRunHaveNone) {
  Error("/alarms?job=4711.0", nullptr, 404);
  Error("/alarms/add", R"({"name": "a", "target": "4711.0", "rule": "x > 1"})", 404);
  Error("/alarms/del", R"({"name": "a", "target": "4711.0"})", 404);
}

TEST_F(WebAlarms, ARuleIsTriedOnAStep) {
  const std::string path = "/api/v1/alarms/try?job=4711.0&name=low&rule=";
  // n3, the third, is slow: its load stays below 4.
  const json::value answer = Json(path + "node_load1%20any%20%3E%204%20for%2010s%20critical");
  EXPECT_EQ(answer.at("rule").as_string(), "node_load1 any > 4 for 10s critical");
  EXPECT_EQ(answer.at("rows").as_int64(), 600);
  const json::array& alarms = answer.at("alarms").as_array();
  ASSERT_FALSE(alarms.empty());
  EXPECT_EQ(answer.at("raised").as_int64(), static_cast<int64_t>(alarms.size()));
  for (const json::value& alarm : alarms) {
    EXPECT_EQ(alarm.at("severity").as_string(), "critical");
    EXPECT_NE(alarm.at("by").at("host").as_string(), "n3");
    EXPECT_GT(alarm.at("value").as_double(), 4);
  }
  EXPECT_TRUE(Json(path + "node_load1%20%3E%20400").at("alarms").as_array().empty());
  EXPECT_EQ(Json(path + "other%20%3E%201").at("missing").at(0).as_string(), "other");
  const json::value part = Json(path + "node_load1%20%3E%200&start=1799999100&end=1799999109");
  EXPECT_EQ(part.at("rows").as_int64(), 10);
}

TEST_F(WebAlarms, WhatCannotBeTriedIsSaid) {
  const std::string path = "/api/v1/alarms/try?job=4711.0&rule=";
  EXPECT_NE(Error("/api/v1/alarms/try", nullptr, 400).find("job and rule"), std::string::npos);
  EXPECT_NE(Error(path + "node_load1", nullptr, 400).find("expected"), std::string::npos);
  Error(path + "sonde_node_missing%20any%20%3E%200", nullptr, 400);
  Error(path + "node_load1%20%3E%200&start=1799999109&end=1799999100", nullptr, 400);
  Error("/api/v1/alarms/try?job=1.0&rule=x%20%3E%200", nullptr, 404);
  source_->Enlarge();
  EXPECT_NE(Error(path + "node_load1%20%3E%200", nullptr, 413).find("shorter range"),
            std::string::npos);
}

}  // namespace
}  // namespace sonde::web::web_alarms_test
