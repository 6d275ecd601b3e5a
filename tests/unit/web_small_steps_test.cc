// Steps in which single numbers matter: a short period, a node whose daemon was started anew.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <future>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/web_fake_source.h"
#include "web/router.h"

namespace sonde::web::web_small_steps_test {
namespace {

namespace json = boost::json;

constexpr Nanos kStart = 1'799'999'000 * kSecond;

// One finished step, of the series that a test gives it.
class OneStep final : public DataSource {
 public:
  Profile profile;
  std::vector<SeriesData> series;

  void Jobs(size_t, JobsCallback callback) const override {
    callback(std::vector<JobDescription>{profile.job});
  }
  void GetProfile(const JobStep&, ProfileCallback callback) const override { callback(profile); }
  void ListSeries(std::string_view, size_t, SeriesCallback callback) const override {
    callback(std::vector<Series>());
  }
  void Query(const QuerySpec& spec, Callback callback) const override {
    Result<std::vector<QueryResult>> results = Evaluate(spec, series);
    callback(results.ok() ? Result<Answer>(Answer{*std::move(results), 1, 1}) : results.status());
  }
};

class SmallSteps : public testing::Test {
 protected:
  // The step's only metric.
  void Begin(MetricType type, Nanos period, const std::vector<std::string>& hosts) {
    JobDescription& job = step_.profile.job;
    job.id = {"7", "0"};
    job.period = period;
    job.start = kStart;
    job.state = EndState::kCompleted;
    for (const std::string& host : hosts) job.nodes.emplace_back().host = host;
    job.expected_nodes = static_cast<uint32_t>(hosts.size());
    metric_.name = "work";
    metric_.type = type;
    FootprintEntry entry;
    entry.series.metric = metric_;
    entry.ticks = 1;
    step_.profile.footprint.push_back(entry);
  }
  void Add(const std::string& host, std::vector<Point> points) {
    SeriesData data;
    data.series.metric = metric_;
    data.series.tags = {{"host", host}, {"job", "7.0"}};
    step_.profile.job.end = std::max(step_.profile.job.end, points.back().time + kMillisecond);
    data.points = std::move(points);
    step_.series.push_back(std::move(data));
  }
  json::value Get(std::string_view target) const {
    Request request;
    EXPECT_TRUE(ParseTarget(target, request).ok());
    std::promise<Response> promise;
    Dispatch(Context(step_), request,
             [&](Response response) { promise.set_value(std::move(response)); });
    const Response response = promise.get_future().get();
    EXPECT_EQ(response.status, 200) << response.body;
    return json::parse(response.body);
  }

  Metric metric_;
  OneStep step_;
};

// Seconds since 1970 in a double are a quarter of a microsecond off.
TEST_F(SmallSteps, DerivativesOfATraceAreRightAtAShortPeriod) {
  constexpr Nanos kPeriod = 10 * kMillisecond;
  Begin(MetricType::kCounter, kPeriod, {"n1"});
  std::vector<Point> points;
  for (int i = 0; i < 100; ++i) points.push_back({kStart + i * kPeriod, i * 10.0});
  Add("n1", std::move(points));
  const json::value plot = Get("/trace/plot?jobid=7.0&filter=work&derivate=true");
  const json::value all = Get("/trace/json?jobid=7.0");
  for (const json::value* line : {&plot, &all.at("metrics").at("deriv__work")}) {
    ASSERT_EQ(line->as_array().size(), 100u);
    for (size_t i = 1; i < 100; ++i) {
      EXPECT_EQ(line->at(i).at(1).to_number<double>(), 1000) << i;
    }
  }
  EXPECT_EQ(all.at("metrics").at("work").at(1).at(0).to_number<double>(), 0.01);
}

// The host is there twice among the nodes, and those behind it have the places that they have.
TEST_F(SmallSteps, ExtremesNameTheirHostsBehindADaemonThatWasStartedAnew) {
  Begin(MetricType::kGauge, kSecond, {"n1", "n1", "n2", "n3"});
  Add("n1", {{kStart, 5}, {kStart + kSecond, 5}});
  Add("n2", {{kStart, 1}, {kStart + kSecond, 9}});
  Add("n3", {{kStart, 9}, {kStart + kSecond, 1}});
  const json::value data = Get("/api/v1/series?job=7.0&metric=work");
  const json::value& line = data.at("series").at(0);
  const auto host = [&](const char* column, size_t i) {
    return data.at("hosts").at(line.at(column).at(i).to_number<size_t>());
  };
  EXPECT_EQ(host("min_host", 0), "n2");
  EXPECT_EQ(host("max_host", 0), "n3");
  EXPECT_EQ(host("min_host", 1), "n3");
  EXPECT_EQ(host("max_host", 1), "n2");
}

}  // namespace
}  // namespace sonde::web::web_small_steps_test
