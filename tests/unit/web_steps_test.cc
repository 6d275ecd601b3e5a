// A job's steps, their tags and runs beside each other, over HTTP.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <future>

#include "tests/unit/web_fake_source.h"
#include "web/router.h"

namespace sonde::web::web_steps_test {
namespace {

namespace json = boost::json;
using testing::Contains;
using testing::HasSubstr;
using testing::Pair;

constexpr Nanos kNow = 1'800'000'000 * kSecond;

class StepsOverHttp : public testing::Test {
 protected:
  Response Ask(Method method, std::string_view target, std::string body = {}) {
    Request request;
    EXPECT_TRUE(ParseTarget(target, request).ok());
    request.method = method;
    request.content_type = "application/json";
    request.body = std::move(body);
    std::promise<Response> promise;
    std::future<Response> future = promise.get_future();
    Dispatch(Context(*source_, &clock_, nullptr), request,
             [&](Response response) { promise.set_value(std::move(response)); });
    return future.get();
  }
  json::object Get(std::string_view target) {
    const Response response = Ask(Method::kGet, target);
    EXPECT_EQ(response.status, 200) << response.body;
    return json::parse(response.body).as_object();
  }
  std::string Tags() { return json::serialize(Get("/api/v1/tags?job=4711.0").at("tags")); }

  FixedClock clock_{kNow};
  std::shared_ptr<FakeSource> source_ = std::make_shared<FakeSource>(kNow);
};

TEST_F(StepsOverHttp, AJobHasItsStepsInShort) {
  const json::object job = Get("/api/v1/steps?job=4711");
  EXPECT_EQ(job.at("job"), "4711");
  const json::array& steps = job.at("steps").as_array();
  ASSERT_EQ(steps.size(), 2u);
  const json::object& step = steps[0].as_object();
  EXPECT_EQ(step.at("step"), "0");
  EXPECT_EQ(step.at("state"), "completed");
  EXPECT_EQ(step.at("nodes"), 4);
  EXPECT_EQ(step.at("tags").at("campaign"), "winter");
  EXPECT_EQ(step.at("summary").at("duration_seconds"), 600);
  EXPECT_EQ(steps[1].at("step"), "batch");
  // A head, which has only its own step.
  EXPECT_EQ(Get("/api/v1/steps?job=4712.0").at("steps").as_array().size(), 1u);
  EXPECT_TRUE(Get("/api/v1/damage").at("damage").as_array().empty());
  EXPECT_EQ(Ask(Method::kGet, "/api/v1/steps?job=9").status, 404);
}

TEST_F(StepsOverHttp, StepsAreListedWithFiltersInPages) {
  const auto ids = [&](const std::string& query) {
    const json::object list = Get("/api/v1/steps" + query);
    std::string out = std::to_string(list.at("found").to_number<int>()) + ":";
    for (const json::value& step : list.at("steps").as_array()) {
      out += " " + std::string(step.at("job").as_string());
    }
    return out;
  };
  EXPECT_EQ(ids(""), "2: 4712 4711");
  EXPECT_EQ(ids("?reverse="), "2: 4711 4712");
  EXPECT_EQ(ids("?sort=time&reverse=false"), "2: 4711 4712");
  EXPECT_EQ(ids("?limit=1"), "2: 4712");
  EXPECT_EQ(ids("?limit=1&offset=1"), "2: 4711");
  EXPECT_EQ(ids("?offset=2"), "2:");
  EXPECT_EQ(ids("?state=running"), "1: 4712");
  EXPECT_EQ(ids("?search=CAVITY+4711"), "1: 4711");
  EXPECT_EQ(ids("?search=n4"), "1: 4711");  // a node
  EXPECT_EQ(ids("?node=n4"), "1: 4711");
  EXPECT_EQ(ids("?search=campaign%3Dwinter"), "1: 4711");
  EXPECT_EQ(ids("?search=cavity+nothing"), "0:");
  EXPECT_EQ(ids("?user=nobody"), "0:");
  EXPECT_EQ(ids("?level=2&cmd=grid&tag=campaign%3Dwinter"), "1: 4711");
  EXPECT_EQ(ids("?tag=campaign&tag=absent"), "0:");
  EXPECT_EQ(ids("?since=6m"), "1: 4712");
  EXPECT_EQ(ids("?until=" + std::to_string((kNow - 400 * kSecond) / kMillisecond)), "1: 4711");
  const json::object list = Get("/api/v1/steps?limit=1&offset=1");
  EXPECT_EQ(list.at("limit"), 1);
  EXPECT_EQ(list.at("offset"), 1);
  EXPECT_EQ(list.at("now"), kNow);
  EXPECT_EQ(list.at("one_step"), false);
  const json::object& step = list.at("steps").at(0).as_object();
  EXPECT_EQ(step.at("title"), "lid-cavity");
  EXPECT_EQ(step.at("command"), "./cavity --grid 512");
  EXPECT_EQ(step.at("level"), 2);
  EXPECT_EQ(step.at("figure").at("name"), "cell_updates");
  EXPECT_EQ(step.at("coverage").at("expected"), 2400);
}

TEST_F(StepsOverHttp, AWrongFilterSaysWhatWasExpected) {
  for (const auto& [query, message] :
       {std::pair{"state=dead", "parameter state dead: expected one of running, completed"},
        {"level=9", "parameter level 9: expected 0 to 4"},
        {"level=2x", "parameter level 2x: expected 0 to 4"},
        {"sort=colour", "parameter sort colour: expected one of start, time"},
        {"reverse=up", "parameter reverse: expected true or false"},
        {"tag=a%20b", "parameter tag: tag 'a b': expected NAME=VALUE"},
        {"since=soon", "parameter since"},
        {"since=1m&until=1h", "parameter since 1m is later than parameter until 1h"},
        {"limit=0", "limit"},
        {"limit=1001", "limit"},
        {"offset=1000001", "offset"},
        {"offset=-1", "offset"}}) {
    const Response response = Ask(Method::kGet, "/api/v1/steps?" + std::string(query));
    EXPECT_EQ(response.status, 400) << query;
    EXPECT_THAT(response.body, HasSubstr(message));
  }
}

TEST_F(StepsOverHttp, TagsAreAddedAndTakenAway) {
  EXPECT_EQ(Tags(), R"({"campaign":"winter"})");
  const Response put = Ask(Method::kPut, "/api/v1/tags?job=4711.0",
                           R"({"tags": {"keep": "", "campaign": "summer"}})");
  EXPECT_EQ(put.status, 200) << put.body;
  EXPECT_EQ(json::parse(put.body).at("tags").at("campaign"), "summer");
  EXPECT_EQ(Tags(), R"({"campaign":"summer","keep":""})");
  const Response removed = Ask(Method::kDelete, "/api/v1/tags?job=4711.0&name=campaign");
  EXPECT_EQ(removed.status, 200) << removed.body;
  EXPECT_EQ(Tags(), R"({"keep":""})");
}

TEST_F(StepsOverHttp, WhatIsNoTagIsRefusedByName) {
  const auto put = [&](std::string_view body) {
    return Ask(Method::kPut, "/api/v1/tags?job=4711.0", std::string(body));
  };
  for (const char* body : {"", "[]", "{}", R"({"tags": []})", R"({"tags": {"a": 1}})",
                           R"({"tags": {"a b": ""}})", R"({"tags": {"a": "x,y"}})"}) {
    EXPECT_EQ(put(body).status, 400) << body;
  }
  EXPECT_THAT(put(R"({"tags": {"a b": ""}})").body, HasSubstr("tag 'a b': expected NAME=VALUE"));
  EXPECT_EQ(Ask(Method::kDelete, "/api/v1/tags?job=4711.0").status, 400);
  EXPECT_EQ(Ask(Method::kDelete, "/api/v1/tags?job=4711.0&name=a%20b").status, 400);
  EXPECT_EQ(Ask(Method::kDelete, "/api/v1/tags?name=keep").status, 400);
  EXPECT_EQ(Tags(), R"({"campaign":"winter"})");
}

TEST_F(StepsOverHttp, WhoCannotWriteSaysWhy) {
  const auto put = [&](std::string_view job) {
    return Ask(Method::kPut, "/api/v1/tags?job=" + std::string(job), R"({"tags": {"a": "1"}})");
  };
  EXPECT_EQ(put("4712.0").status, 409);
  EXPECT_THAT(put("4712.0").body, HasSubstr("4712.0 is running"));
  EXPECT_EQ(put("locked").status, 409);
  EXPECT_EQ(put("forbidden").status, 403);
  EXPECT_EQ(put("9.0").status, 404);
}

TEST_F(StepsOverHttp, RunsBesideEachOther) {
  json::object diff = Get("/api/v1/diff?profiles=4711.0,4710.0,4709.0");
  EXPECT_EQ(diff.at("groups").as_array().size(), 3u);
  EXPECT_EQ(diff.at("axis").at("align"), "start");
  // Each parameter a group.
  diff = Get("/api/v1/diff?profiles=4711.0,4710.0&profiles=4709.0&align=phase:solve");
  ASSERT_EQ(diff.at("groups").as_array().size(), 2u);
  EXPECT_EQ(diff.at("groups").at(0).at("runs").at(0).at("key"), "4711.0,4710.0");
  EXPECT_EQ(diff.at("axis").at("align"), "phase:solve");
  for (const char* wrong :
       {"", "?profiles=", "?profiles=4711.0", "?profiles=4711.0,", "?profiles=4711.0,,4710.0"}) {
    EXPECT_EQ(Ask(Method::kGet, "/api/v1/diff" + std::string(wrong)).status, 400) << wrong;
  }
  EXPECT_EQ(Ask(Method::kGet, "/api/v1/diff?profiles=4711.0,9.0").status, 404);
}

TEST_F(StepsOverHttp, ManyRuns) {
  const json::object runs = Get("/api/v1/runs?search=cavity&state=completed");
  EXPECT_EQ(runs.at("runs").as_array().size(), 3u);
  EXPECT_EQ(runs.at("rows").at(0).at("apart").at(0), 2);
  const json::object bands = Get("/api/v1/runs/series?search=cavity&metric=node_load1&axis=share");
  EXPECT_EQ(bands.at("axis"), "share");
  EXPECT_EQ(bands.at("series").at(0).at("metric"), "node_load1");
  std::string many = "profiles=1";
  for (int i = 0; i < 500; ++i) many += ",1";
  for (const std::string& wrong :
       {std::string("profiles=1,,2"), std::string("profiles=1,2&state=failed"),
        std::string("state=wrong"), std::string("level=9"), many}) {
    EXPECT_EQ(Ask(Method::kGet, "/api/v1/runs?" + wrong).status, 400) << wrong;
    EXPECT_EQ(Ask(Method::kGet, "/api/v1/runs/series?metric=a&" + wrong).status, 400) << wrong;
  }
  std::string metrics = "metric=a";
  for (int i = 0; i < 16; ++i) metrics += ",a";
  for (const std::string& wrong :
       {std::string("axis=time"), std::string("metric=a&axis=wrong"), metrics}) {
    EXPECT_EQ(Ask(Method::kGet, "/api/v1/runs/series?" + wrong).status, 400) << wrong;
  }
}

TEST_F(StepsOverHttp, ModelsOfRuns) {
  EXPECT_EQ(Get("/api/v1/models?runs=cavity&by=tasks&all=true&last=20").at("parameters").at(0),
            "tasks");
  for (const char* wrong : {"", "?runs=", "?runs=a&last=0", "?runs=a&last=1001", "?runs=a&all=2"}) {
    EXPECT_EQ(Ask(Method::kGet, "/api/v1/models" + std::string(wrong)).status, 400) << wrong;
  }
}

TEST_F(StepsOverHttp, WhatFollowsFromNumbers) {
  EXPECT_TRUE(Get("/api/v1/insight?job=4711.0").contains("hints"));
  for (const char* kind :
       {"hints", "budget", "phases", "stragglers", "periods", "roofline", "energy"}) {
    EXPECT_TRUE(Get("/api/v1/insight?job=4711.0&of=" + std::string(kind)).contains(kind)) << kind;
  }
  const Response wrong = Ask(Method::kGet, "/api/v1/insight?job=4711.0&of=guesses");
  EXPECT_EQ(wrong.status, 400);
  EXPECT_THAT(wrong.body,
              HasSubstr("expected hints, budget, phases, stragglers, periods, roofline or energy"));
  EXPECT_EQ(Ask(Method::kGet, "/api/v1/insight").status, 400);
  EXPECT_EQ(Ask(Method::kGet, "/api/v1/insight?job=9.0").status, 404);
}

}  // namespace
}  // namespace sonde::web::web_steps_test
