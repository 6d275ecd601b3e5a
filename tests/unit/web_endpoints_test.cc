// Every endpoint, called as the server calls it, over two steps of known numbers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <boost/json.hpp>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <future>

#include "tests/unit/task_wait.h"
#include "tests/unit/web_fake_source.h"
#include "web/router.h"

namespace sonde::web::web_endpoints_test {
namespace {

namespace json = boost::json;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr Nanos kNow = 1'800'000'000 * kSecond;

class Endpoints : public testing::Test {
 protected:
  Response Call(Request request) {
    std::promise<Response> promise;
    std::future<Response> future = promise.get_future();
    Dispatch(Context(*source_, &clock_, nullptr), request,
             [&](Response response) { promise.set_value(std::move(response)); });
    return future.get();
  }
  Response Get(std::string_view target) {
    Request request;
    EXPECT_TRUE(ParseTarget(target, request).ok());
    return Call(std::move(request));
  }
  Response Post(std::string_view target, std::string body) {
    Request request;
    EXPECT_TRUE(ParseTarget(target, request).ok());
    request.method = Method::kPost;
    request.content_type = "application/json";
    request.body = std::move(body);
    return Call(std::move(request));
  }
  static json::value Json(const Response& response, int status = 200) {
    EXPECT_EQ(response.status, status) << response.body;
    return json::parse(response.body);
  }

  FixedClock clock_{kNow};
  std::shared_ptr<FakeSource> source_ = std::make_shared<FakeSource>(kNow);
};

// ---- Jobs and profiles ----

TEST_F(Endpoints, JobListIsNewestFirstInMetricProxysShape) {
  const json::value list = Json(Get("/job/list?limit=1000"));
  // After "main" and two nodes: tests/unit/web_proxy_test.cc.
  ASSERT_EQ(list.as_array().size(), 5u);
  const json::object& job = list.at(4).as_object();
  EXPECT_EQ(list.at(3).at("jobid"), "4712.0");
  EXPECT_EQ(list.at(3).at("end_time"), 0);
  EXPECT_EQ(job.at("jobid"), "4711.0");
  EXPECT_EQ(job.at("command"), "./cavity --grid 512");
  EXPECT_EQ(job.at("size"), 8);
  EXPECT_EQ(job.at("nodelist"), "n[1-4]");
  EXPECT_EQ(job.at("partition"), "main");
  EXPECT_EQ(job.at("cluster"), "balloon");
  EXPECT_EQ(job.at("run_dir"), "/home/ada/runs");
  EXPECT_EQ(job.at("start_time"), 1'799'999'000);
  EXPECT_EQ(job.at("end_time"), 1'799'999'600);
  EXPECT_EQ(job.at("samples"), 2360);
  EXPECT_EQ(Json(Get("/job/list?limit=1")).as_array().size(), 4u);
}

TEST_F(Endpoints, JobIsASnapshotWithGaugesAndCounters) {
  for (const char* target :
       {"/job?job=4711.0", "/job/?job=4711.0", "/get?jobid=4711.0", "/profiles/get?jobid=4711.0"}) {
    const json::value snapshot = Json(Get(target));
    EXPECT_EQ(snapshot.at("desc").at("jobid"), "4711.0");
    bool gauge = false, counter = false;
    for (const json::value& item : snapshot.at("counters").as_array()) {
      if (item.at("name") == "node_memory_MemTotal_bytes") {
        const json::value& fields = item.at("ctype").at("Gauge");
        EXPECT_EQ(fields.at("min"), int64_t{64} << 30);
        EXPECT_EQ(fields.at("max"), int64_t{64} << 30);
        EXPECT_EQ(fields.at("total").to_number<double>() / fields.at("hits").to_number<double>(),
                  std::ldexp(256, 30));
        gauge = true;
      }
      if (item.at("name") == R"(node_network_receive_bytes_total{device="ib0"})") {
        EXPECT_GT(item.at("ctype").at("Counter").at("value").to_number<double>(), 4 * 599 * 250e6);
        EXPECT_EQ(item.at("doc"), "Bytes received.");
        counter = true;
      }
    }
    EXPECT_TRUE(gauge && counter) << target;
  }
  EXPECT_EQ(Json(Get("/job?limit=20")).as_array().size(), 5u);
}

TEST_F(Endpoints, ProfilesAreFinishedStepsByCommand) {
  const json::value profiles = Json(Get("/profiles/percmd"));
  const json::array& runs = profiles.at("./cavity --grid 512").as_array();
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0].at("jobid"), "4711.0");
}

TEST_F(Endpoints, AnUnknownStepIs404AndAMissingParameter400) {
  for (const char* target : {"/job?job=9", "/get?jobid=9.0", "/metrics?job=9",
                             "/api/v1/profile?job=9", "/api/v1/series?job=9&metric=node_load1"}) {
    EXPECT_EQ(Json(Get(target), 404).at("error").at("code"), 404) << target;
  }
  for (const char* target :
       {"/get", "/profiles/get", "/api/v1/profile", "/api/v1/series?job=4711.0",
        "/job/list?limit=0", "/job/list?limit=x"}) {
    EXPECT_EQ(Json(Get(target), 400).at("error").at("code"), 400) << target;
  }
}

TEST_F(Endpoints, TheNativeProfileReadsBack) {
  const Result<Profile> profile = ProfileFromJson(Get("/api/v1/profile?job=4711.0").body);
  ASSERT_TRUE(profile.ok()) << profile.status().message();
  const JobStep id{"4711", "0"};
  const Result<Profile> told = WaitFor(*source_, &StepHistory::GetProfile, id);
  EXPECT_EQ(profile->footprint.size(), told->footprint.size());
}

// ---- What the router refuses ----

TEST_F(Endpoints, CountersArePausedOnlyByAWholeRequestForARunningStep) {
  constexpr char kPath[] = "/api/v1/counters";
  for (const char* body : {"", "[]", "{}", R"({"job": "1.0"})", R"({"job": 1, "paused": true})",
                           R"({"job": "1.0", "paused": "yes"})"}) {
    EXPECT_EQ(Post(kPath, body).status, 400) << body;
  }
  EXPECT_THAT(Post(kPath, R"({"job": "1.0", "paused": 1})").body, HasSubstr("true or false"));
  EXPECT_EQ(Post(kPath, R"({"job": "99.0", "paused": true})").status, 404);
  EXPECT_EQ(Get(kPath).status, 405);
}

TEST_F(Endpoints, WrongPathsMethodsAndTypesAreRefusedAsJson) {
  EXPECT_EQ(Json(Get("/nothing"), 404).at("error").at("code"), 404);
  EXPECT_EQ(Get("/../etc/passwd").status, 404);
  EXPECT_EQ(Get("/%2e%2e/etc/passwd").status, 404);
  EXPECT_EQ(Get("/vendor/uPlot/../../app.js").status, 404);
  EXPECT_EQ(Get("/api/put").status, 405);
  const Response post = Post("/job/list", "{}");
  EXPECT_EQ(post.status, 405);
  EXPECT_THAT(post.headers, Contains(testing::Pair("Allow", "GET, HEAD")));
  Request request;
  ASSERT_TRUE(ParseTarget("/api/query", request).ok());
  request.method = Method::kPost;
  request.content_type = "text/csv";
  EXPECT_EQ(Call(request).status, 415);
  request.content_type = "application/json; charset=utf-8";
  request.content_encoding = "br";
  EXPECT_EQ(Call(request).status, 415);
}

TEST_F(Endpoints, PagesComeWithTheirTypePolicyAndETag) {
  const Response page = Get("/");
  EXPECT_THAT(page.content_type, HasSubstr("text/html"));
  EXPECT_THAT(page.body, HasSubstr("<title>Sonde</title>"));
  EXPECT_FALSE(page.etag.empty());
  EXPECT_THAT(page.headers,
              Contains(testing::Pair("Content-Security-Policy", HasSubstr("default-src 'none'"))));
  EXPECT_THAT(Get("/app.js").content_type, HasSubstr("text/javascript"));
  EXPECT_THAT(Get("/vendor/uPlot/uPlot.iife.min.js").body, HasSubstr("uPlot"));
  EXPECT_NE(Get("/style.css").etag, page.etag);
}

// ---- Prometheus ----

TEST_F(Endpoints, MetricsAreTheStepsNumbers) {
  const Response response = Get("/metrics?job=4711.0");
  EXPECT_EQ(response.content_type, "text/plain; version=0.0.4; charset=utf-8");
  const std::string& text = response.body;
  EXPECT_THAT(text, HasSubstr("# HELP node_memory_MemTotal_bytes Memory of the node.\n"
                              "# TYPE node_memory_MemTotal_bytes gauge\n"
                              "node_memory_MemTotal_bytes{job=\"4711.0\"} 274877906944\n"));
  EXPECT_THAT(text, HasSubstr("# TYPE node_cpu_seconds_total counter\n"));
  EXPECT_THAT(text, HasSubstr("node_cpu_seconds_total{job=\"4711.0\",mode=\"user\"} "));
  // Of load the mean, of available memory the least: the reduction of the metric.
  EXPECT_THAT(text, Not(HasSubstr("job=\"4712.0\"")));
  // The names and the help of an application are its own.
  EXPECT_THAT(text, HasSubstr("# HELP solver_residual Residual \\\\ norm,\\nrelative.\n"));
}

TEST_F(Endpoints, PercentilesAreAFamilyOfTheirOwn) {
  const std::string text = Get("/metrics?job=4711.0").body;
  EXPECT_THAT(text, HasSubstr("# TYPE task_resident_memory_bytes_spread gauge\n"));
  EXPECT_THAT(text,
              HasSubstr("task_resident_memory_bytes_spread{job=\"4711.0\",percentile=\"5\"} "));
  EXPECT_THAT(text,
              HasSubstr("task_resident_memory_bytes_spread{job=\"4711.0\",percentile=\"99\"} "));
  EXPECT_THAT(text, Not(HasSubstr("node_load1_spread")));
}

TEST_F(Endpoints, MetricsWithoutJobAreThoseOfRunningSteps) {
  const std::string text = Get("/metrics").body;
  EXPECT_THAT(text, HasSubstr("job=\"4712.0\""));
  EXPECT_THAT(text, Not(HasSubstr("job=\"4711.0\"")));
}

// What promtool has to say to a text but for names, which are node_exporter's own or Dragon's.
std::string Complaints(const std::string& text) {
  char path[] = "/tmp/sonde-metrics-XXXXXX";
  const int fd = mkstemp(path);
  EXPECT_GE(fd, 0);
  close(fd);
  std::ofstream(path) << text;
  const std::string command = std::string("promtool check metrics < ") + path + " 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return "promtool cannot be run";
  std::string complaints;
  std::array<char, 4096> line;
  while (std::fgets(line.data(), line.size(), pipe) != nullptr) {
    if (std::string_view(line.data()).find("camelCase") == std::string_view::npos) {
      complaints += line.data();
    }
  }
  const int status = pclose(pipe);
  std::remove(path);
  // 3: it has style to complain of; anything else is a text that does not parse.
  EXPECT_TRUE(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 3));
  return complaints;
}

TEST_F(Endpoints, PromtoolAcceptsTheText) {
  for (const char* target :
       {"/metrics", "/metrics?job=4711.0", "/metrics?job=main", "/metrics?job=Node:%20n1",
        "/metrics?scope=node", "/metrics?scope=node&job=4711.0", "/metrics/?job=4712.0"}) {
    const Response response = Get(target);
    ASSERT_EQ(response.status, 200) << target << response.body;
    EXPECT_THAT(response.body, HasSubstr("# TYPE node_load1 gauge\n")) << target;
    EXPECT_EQ(Complaints(response.body), "")
        << target << "; promtool is in Debian's package prometheus";
  }
}

// ---- OpenTSDB ----

std::string QueryBody(std::string_view queries, std::string_view more = "") {
  return R"({"start":1799999000,"end":1799999599,"queries":[)" + std::string(queries) + "]" +
         std::string(more) + "}";
}

TEST_F(Endpoints, QueryAggregatesOverHosts) {
  const json::value results = Json(Post(
      "/api/query",
      QueryBody(
          R"({"metric":"node_memory_MemTotal_bytes","aggregator":"sum","downsample":"1m-avg",)"
          R"("filters":[{"type":"literal_or","tagk":"job","filter":"4711.0","groupBy":false}]})")));
  ASSERT_EQ(results.as_array().size(), 1u);
  const json::value& result = results.at(0);
  EXPECT_EQ(result.at("metric"), "node_memory_MemTotal_bytes");
  EXPECT_EQ(result.at("tags").at("job"), "4711.0");
  EXPECT_THAT(result.at("aggregateTags").as_array(), ElementsAre(json::value("host")));
  EXPECT_FALSE(result.as_object().contains("query"));
  const json::object& dps = result.at("dps").as_object();
  // 1799999000 lies within a minute: the first whole one starts at 1799999040.
  EXPECT_EQ(dps.begin()->key(), "1799999040");
  EXPECT_EQ(dps.begin()->value().to_number<double>(), std::ldexp(256, 30));
  EXPECT_EQ(dps.size(), 10u);
}

TEST_F(Endpoints, QueryGroupsByTagAndTakesArraysMillisecondsAndShowQuery) {
  const std::string body =
      QueryBody(R"({"metric":"node_load1","aggregator":"avg","tags":{"host":"*","job":"4711.0"}},)"
                R"({"metric":"solver_iterations_total","aggregator":"none","rate":true,)"
                R"("downsample":"10s-max","tags":{"job":"4711.0"}})",
                R"(,"msResolution":true,"showQuery":true)");
  const json::value results = Json(Post("/api/query?arrays=true", body));
  ASSERT_EQ(results.as_array().size(), 8u);
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(results.at(i).at("query").at("index"), i / 4);
    EXPECT_EQ(results.at(i).at("tags").at("host").as_string().at(0), 'n');
  }
  const json::array& points = results.at(0).at("dps").as_array();
  EXPECT_EQ(points.at(0).at(0), 1'799'999'000'000);
  EXPECT_EQ(points.size(), 600u);
  for (const json::value& point : results.at(7).at("dps").as_array()) {
    EXPECT_NEAR(point.at(1).to_number<double>(), 12, 0.2);
  }
}

TEST_F(Endpoints, FillIsTextForNanAndNullForNull) {
  const std::string query =
      R"({"metric":"node_load1","aggregator":"none","downsample":"20s-avg-FILL",)"
      R"("tags":{"host":"n3","job":"4711.0"}})";
  for (const auto& [fill, expected] : {std::pair("nan", R"("NaN")"), std::pair("null", "null")}) {
    std::string one = query;
    one.replace(one.find("FILL"), 4, fill);
    const json::value results = Json(Post("/api/query", QueryBody(one)));
    // n3 delivered nothing from 1799999200 on, for 40 s.
    EXPECT_EQ(json::serialize(results.at(0).at("dps").at("1799999220")), expected);
  }
}

TEST_F(Endpoints, QueryErrorsAreThoseOfOpenTsdb) {
  const std::pair<const char*, const char*> cases[] = {
      {"not json", "JSON"},
      {"[]", "object"},
      {R"({"queries":[]})", "start"},
      {R"({"start":1,"queries":[]})", "queries"},
      {R"({"start":5,"end":5,"queries":[{"metric":"a","aggregator":"sum"}]})", "end"},
      {R"({"start":"yesterday","queries":[{"metric":"a","aggregator":"sum"}]})", "yesterday"},
      {R"({"start":1,"queries":[{"metric":"a"}]})", "aggregator"},
      {R"({"start":1,"queries":[{"aggregator":"sum"}]})", "metric"},
      {R"({"start":1,"queries":[{"metric":"a","aggregator":"mul"}]})", "mul"},
      {R"({"start":1,"queries":[{"metric":"a","aggregator":"sum","downsample":"1q-avg"}]})", "1q"},
      {R"({"start":1,"queries":[{"metric":"a","aggregator":"sum","rateOptions":{"x":1}}]})", "x"},
      {R"({"start":1,"queries":[{"metric":"a","aggregator":"sum",)"
       R"("filters":[{"type":"like","tagk":"h","filter":"n"}]}]})",
       "like"},
      {R"({"start":1,"queries":[{"metric":"no_such","aggregator":"sum"}]})",
       "No such name for 'metrics': 'no_such'"},
      {R"({"start":1,"queries":[{"metric":"node_load1","aggregator":"sum","tags":{"disk":"*"}}]})",
       "No such name for 'tagk': 'disk'"},
  };
  for (const auto& [body, text] : cases) {
    const json::value error = Json(Post("/api/query", body), 400);
    EXPECT_THAT(std::string(error.at("error").at("message").as_string()), HasSubstr(text)) << body;
  }
  // A name that exists without data in the range is no error.
  EXPECT_EQ(Post("/api/query", R"({"start":1,"end":2,"queries":[)"
                               R"({"metric":"node_load1","aggregator":"sum"}]})")
                .body,
            "[]");
}

// Answers every query with ten points a second.
class QuickSource : public FakeSource {
 public:
  QuickSource() : FakeSource(kNow) {}
  void Query(const QuerySpec& spec, Callback callback) const override {
    QueryResult result;
    result.metric = spec.metric;
    for (int i = 0; i < 20; ++i) {
      result.points.push_back({kNow + i * 100 * kMillisecond, static_cast<double>(i)});
    }
    callback(web::Answer{{result}, 1, 1});
  }
};

TEST_F(Endpoints, InSecondsTheLastPointOfEachCounts) {
  source_ = std::make_shared<QuickSource>();
  const std::string query = R"({"metric":"node_load1","aggregator":"none"})";
  EXPECT_THAT(Post("/api/query", QueryBody(query)).body,
              HasSubstr(R"("dps":{"1800000000":9,"1800000001":19})"));
  const json::value fine = Json(Post("/api/query", QueryBody(query, R"(,"msResolution":true)")));
  EXPECT_EQ(fine.at(0).at("dps").as_object().size(), 20u);
}

// Its rows alone answer.
class RowsOnlySource : public FakeSource {
 public:
  RowsOnlySource() : FakeSource(kNow) {}
  void Query(const QuerySpec& spec, Callback callback) const override {
    FakeSource::Query(spec, [callback = std::move(callback)](Result<web::Answer> answer) {
      answer->rows_only = "n2's series cannot be read:\r\nno such file";
      callback(std::move(answer));
    });
  }
};

TEST_F(Endpoints, AnAnswerOfRowsAloneSaysSo) {
  const std::string series = "/api/v1/series?job=4711.0&metric=node_load1&points=10";
  const std::string query = QueryBody(R"({"metric":"node_load1","aggregator":"sum"})");
  const auto header = [](const Response& response) {
    std::string value;
    for (const auto& [name, text] : response.headers) {
      if (name == "Sonde-Rows-Only") value = text;
    }
    return value;
  };
  EXPECT_EQ(header(Post("/api/query", query)), "");
  EXPECT_FALSE(Json(Get(series)).as_object().contains("rows_only"));
  source_ = std::make_shared<RowsOnlySource>();
  EXPECT_EQ(header(Post("/api/query", query)), "n2's series cannot be read:??no such file")
      << "in one line";
  EXPECT_EQ(Json(Get(series)).at("rows_only"), "n2's series cannot be read:\r\nno such file");
}

TEST_F(Endpoints, AFailingSourceIsAnError) {
  source_->SetMode(FakeSource::Mode::kFail);
  const json::value error =
      Json(Post("/api/query", QueryBody(R"({"metric":"node_load1","aggregator":"sum"})")), 503);
  EXPECT_EQ(error.at("error").at("message"), "node n2 does not answer");
}

std::vector<std::string> Texts(const json::value& list) {
  std::vector<std::string> out;
  for (const json::value& item : list.as_array()) out.emplace_back(item.as_string());
  return out;
}

TEST_F(Endpoints, SuggestCompletesNames) {
  EXPECT_THAT(Texts(Json(Get("/api/suggest?type=metrics&q=node_network"))),
              ElementsAre("node_network_receive_bytes_total", "node_network_transmit_bytes_total"));
  EXPECT_THAT(Texts(Json(Get("/api/suggest?type=tagk&q="))),
              ElementsAre("device", "host", "job", "mode", "task"));
  EXPECT_THAT(Texts(Json(Post("/api/suggest", R"({"type":"tagv","q":"n","max":3})"))),
              ElementsAre("n1", "n2", "n3"));
  EXPECT_EQ(Get("/api/suggest?type=other&q=cpu").status, 400);
  EXPECT_EQ(Get("/api/suggest?type=metrics&q=zzz").body, "[]");
}

TEST_F(Endpoints, LookupFindsTags) {
  const json::value found =
      Json(Get("/api/search/lookup?m=node_load1%7Bhost=*,job=4711.0%7D&limit=2"));
  EXPECT_EQ(found.at("type"), "LOOKUP");
  EXPECT_EQ(found.at("results").as_array().size(), 2u);
  EXPECT_EQ(found.at("totalResults"), 4);
  EXPECT_EQ(found.at("results").at(0).at("tags").at("host"), "n1");
  EXPECT_EQ(Json(Get("/api/search/lookup?m=node_load1&limit=0")).at("results").as_array().size(),
            6u);
  EXPECT_EQ(Get("/api/search/lookup?m=no_such").status, 404);
  EXPECT_EQ(Get("/api/search/lookup?m=a%7Bb").status, 400);
  EXPECT_EQ(Get("/api/search/lookup").status, 400);
}

TEST_F(Endpoints, GrafanaFindsAggregatorsFiltersAndVersion) {
  EXPECT_THAT(Texts(Json(Get("/api/aggregators"))), Contains("none"));
  EXPECT_TRUE(Json(Get("/api/config/filters")).as_object().contains("literal_or"));
  const json::value version = Json(Get("/api/version"));
  EXPECT_EQ(version.at("version"), "2.4.1");
  EXPECT_TRUE(version.as_object().contains("short_revision"));
  for (const auto& [key, value] : version.as_object()) EXPECT_TRUE(value.is_string()) << key;
}

// ---- What the page draws ----

TEST_F(Endpoints, SeriesHasTheBandAndNamesItsEdges) {
  const json::value data = Json(Get("/api/v1/series?job=4711.0&metric=node_load1&points=60"));
  EXPECT_EQ(data.at("interval"), 10);
  EXPECT_EQ(data.at("unit"), "1");
  const json::object& line = data.at("series").at(0).as_object();
  const size_t last = line.at("time").as_array().size() - 1;
  EXPECT_EQ(last, 59u);
  const auto host = [&](const char* column, size_t i) {
    return data.at("hosts").at(line.at(column).as_array().at(i).to_number<size_t>());
  };
  EXPECT_EQ(host("min_host", last), "n3");  // the slow one
  EXPECT_NE(host("max_host", last), "n3");
  EXPECT_LT(line.at("min").at(last).to_number<double>(),
            line.at("value").at(last).to_number<double>());
  // While n3 was away the points say so.
  EXPECT_EQ(line.at("count").at(22), 3);
  EXPECT_EQ(line.at("count").at(last), 4);
}

// Also of a counter, whose points have what an absent node had counted.
TEST_F(Endpoints, SeriesSaysOfHowManyNodesItsPointsAre) {
  const json::value profile = Json(Get("/api/v1/profile?job=4711.0"));
  EXPECT_EQ(profile.at("job").at("presence").as_array().size(), 3u);
  const double start = profile.at("job").at("start").to_number<double>() / kSecond;
  const std::string series = "/api/v1/series?job=4711.0&points=60&metric=";
  for (const char* metric : {"node_load1", "node_cpu_seconds_total"}) {
    // n3 is away for 40 s; intervals of 10 s in which it left or came are of three nodes.
    std::vector<std::pair<double, int>> nodes;
    const json::value data = Json(Get(series + metric));
    for (const json::value& one : data.at("nodes").as_array()) {
      nodes.emplace_back(one.at(0).to_number<double>(), one.at(1).to_number<int>());
    }
    const auto interval = [&](double since) { return std::floor((start + since) / 10) * 10; };
    const decltype(nodes) expected = {
        {interval(0), 4}, {interval(200), 3}, {interval(239) + 10, 4}};
    EXPECT_EQ(nodes, expected) << metric;
  }
  EXPECT_FALSE(Json(Get(series + "node_load1&by=host")).as_object().contains("nodes"));
}

// Else a rate of what is sampled every 10 s would go up and down with the samples in a bucket.
TEST_F(Endpoints, IntervalsDivideTheSlowPeriodOrAreMultiplesOfIt) {
  for (const auto& [points, interval] :
       {std::pair(600, 1), {300, 2}, {200, 5}, {90, 10}, {40, 20}}) {
    const json::value data =
        Json(Get("/api/v1/series?job=4711.0&metric=node_load1&points=" + std::to_string(points)));
    EXPECT_EQ(data.at("interval"), interval) << points;
  }
}

TEST_F(Endpoints, SeriesOfACounterIsARateByItsOwnTags) {
  const json::value data =
      Json(Get("/api/v1/series?job=4711.0&metric=node_cpu_seconds_total&points=60"));
  ASSERT_EQ(data.at("series").as_array().size(), 4u);
  for (const json::value& line : data.at("series").as_array()) {
    EXPECT_FALSE(line.at("tags").as_object().contains("host"));
    if (line.at("tags").at("mode") != "iowait") continue;
    for (const json::value& value : line.at("value").as_array()) {
      EXPECT_NEAR(value.to_number<double>(), 0.2, 1e-6);
    }
  }
}

TEST_F(Endpoints, SeriesByHostAddsUpTheTasks) {
  const json::value data =
      Json(Get("/api/v1/series?job=4711.0&metric=task_threads&points=60&by=host"));
  ASSERT_EQ(data.at("series").as_array().size(), 4u);
  EXPECT_EQ(data.at("series").at(0).at("tags").at("host"), "n1");
  EXPECT_EQ(data.at("series").at(0).at("value").at(5), 4);  // two tasks of two
  EXPECT_EQ(Get("/api/v1/series?job=4711.0&metric=task_threads&by=rack").status, 400);
}

TEST_F(Endpoints, SeriesOfAMetricWithASpreadHasItsPercentiles) {
  const json::value data =
      Json(Get("/api/v1/series?job=4711.0&metric=task_resident_memory_bytes&points=60"));
  const json::object& line = data.at("series").at(0).as_object();
  const auto at = [&](const char* column) { return line.at(column).at(10).to_number<double>(); };
  EXPECT_EQ(line.at("p50").as_array().size(), line.at("time").as_array().size());
  EXPECT_EQ(at("p5"), at("min")) << "8 tasks";
  EXPECT_EQ(at("p95"), at("max"));
  EXPECT_LT(at("p5"), at("p50"));
  EXPECT_LT(at("p50"), at("p95"));
  const json::value load = Json(Get("/api/v1/series?job=4711.0&metric=node_load1&points=60"));
  EXPECT_FALSE(load.at("series").at(0).as_object().contains("p50"));
}

TEST_F(Endpoints, SeriesNamesTheRankOfATask) {
  const json::value data =
      Json(Get("/api/v1/series?job=4711.0&metric=task_resident_memory_bytes&points=60"));
  const json::object& line = data.at("series").at(0).as_object();
  const int64_t rank = line.at("max_rank").at(10).as_int64();
  EXPECT_EQ(rank / 2, line.at("max_host").at(10).as_int64());
}

}  // namespace
}  // namespace sonde::web::web_endpoints_test
