// metric-proxy's endpoints beside alarms, exporters and other proxies: their shapes over two steps
// of known numbers, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <future>
#include <sstream>

#include "tests/unit/web_proxy_fixture.h"
#include "web/opentsdb/put_store.h"
#include "web/proxy/queue.h"

namespace sonde::web::web_proxy_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// ---- squeue ----

// A server that is a head has a fabric, whose descriptors nobody marks.
TEST(Queue, SqueueHasNoneOfTheServersDescriptors) {
  const std::string folder = testing::TempDir() + "squeue-" + std::to_string(getpid());
  ASSERT_EQ(mkdir(folder.c_str(), 0700), 0);
  const std::string program = folder + "/squeue";
  std::ofstream(program) << "#!/bin/sh\necho 'JOBID|COMMAND'; echo 7\\|$(ls /proc/self/fd)\n";
  chmod(program.c_str(), 0700);
  const std::string path = getenv("PATH");
  setenv("PATH", (folder + ":" + path).c_str(), 1);
  const int stray = dup2(STDIN_FILENO, 300);
  const Result<std::string> seen = QueuedCommand("7");
  close(stray);
  setenv("PATH", path.c_str(), 1);
  unlink(program.c_str());
  rmdir(folder.c_str());
  ASSERT_TRUE(seen.ok()) << seen.status().message();
  EXPECT_THAT(*seen, AllOf(HasSubstr("0"), Not(HasSubstr("300"))));
}

// ---- main and the nodes ----

TEST_F(Proxy, MainAndTheNodesAreJobs) {
  const json::value list = Json(Get("/job/list"));
  EXPECT_EQ(list.at(0).at("jobid"), "main");
  EXPECT_EQ(list.at(0).at("command"), "Sum of all Jobs");
  for (const char* number : {"size", "start_time", "end_time"}) EXPECT_EQ(list.at(0).at(number), 0);
  for (const char* text : {"nodelist", "partition", "cluster", "run_dir"}) {
    EXPECT_EQ(list.at(0).at(text), "");
  }
  EXPECT_EQ(list.at(1).at("jobid"), "Node: n1");
  EXPECT_EQ(list.at(1).at("command"), "Sum of all Jobs running on n1");
  EXPECT_EQ(list.at(1).at("nodelist"), "n1");
  EXPECT_EQ(list.at(2).at("jobid"), "Node: n2");
  EXPECT_EQ(list.at(3).at("jobid"), "4712.0");
  // What has ended is a profile, unless somebody asks for it.
  EXPECT_EQ(list.as_array().size(), 4u);
  EXPECT_EQ(Json(Get("/job/list?limit=2")).at(4).at("jobid"), "4711.0");
}

TEST_F(Proxy, CountersHaveTheirTimeInWholeMicroseconds) {
  const json::value running = Json(Get("/job?job=4712.0"));
  EXPECT_EQ(Counter(running, "solver_iterations_total")->at("Counter").at("ts"), kNow / 1000);
  const json::value finished = Json(Get("/profiles/get?jobid=4711.0"));
  EXPECT_EQ(Counter(finished, "solver_iterations_total")->at("Counter").at("ts"),
            int64_t{1'799'999'600'000'000});
}

TEST_F(Proxy, AFinishedStepHasItsWalltime) {
  const json::value finished = Json(Get("/profiles/get?jobid=4711.0"));
  EXPECT_EQ(Counter(finished, "walltime")->at("Counter").at("value"), 600);
  EXPECT_EQ(json::serialize(Json(Get("/job?job=4712.0"))).find("walltime"), std::string::npos);
}

// Their clients read numbers, and nothing else.
TEST_F(Proxy, NoSnapshotHasANull) {
  for (const char* target : {"/job", "/job?job=main", "/job?job=4711.0", "/job?job=Node:%20n2"}) {
    EXPECT_EQ(Get(target).body.find("null"), std::string::npos) << target;
  }
}

TEST_F(Proxy, MainIsTheSumOverRunningSteps) {
  // One runs, so that main has its numbers.
  const json::value main = Json(Get("/job/?job=main")), step = Json(Get("/job/?job=4712.0"));
  EXPECT_EQ(main.at("desc").at("jobid"), "main");
  EXPECT_EQ(main.at("counters"), step.at("counters"));
  EXPECT_FALSE(main.at("counters").as_array().empty());
}

TEST_F(Proxy, ANodesJobHasWhatItMeasuresNow) {
  const json::value node = Json(Get("/job/?job=Node:%20n2"));
  EXPECT_EQ(node.at("desc").at("jobid"), "Node: n2");
  const json::value* memory = Counter(node, "node_memory_MemTotal_bytes");
  ASSERT_NE(memory, nullptr);
  EXPECT_EQ(memory->at("Gauge").at("min"), int64_t{64} << 30);
  EXPECT_EQ(memory->at("Gauge").at("hits"), 1);
  EXPECT_EQ(memory->at("Gauge").at("total"), int64_t{64} << 30);
  // Of two tasks with two threads each.
  EXPECT_EQ(Counter(node, "task_threads")->at("Gauge").at("total"), 4);
  EXPECT_GT(Counter(node, R"(node_network_receive_bytes_total{device="ib0"})")
                ->at("Counter")
                .at("value")
                .to_number<double>(),
            250e6);
  EXPECT_EQ(Json(Get("/job/?job=Node:%20n9"), 404).at("success"), false);
}

TEST_F(Proxy, AllSnapshotsHaveMainTheNodesAndTheSteps) {
  std::vector<std::string> ids;
  const json::value all = Json(Get("/job"));
  for (const json::value& one : all.as_array()) {
    ids.emplace_back(one.at("desc").at("jobid").as_string().c_str());
  }
  EXPECT_THAT(ids, testing::ElementsAre("main", "Node: n1", "Node: n2", "4712.0"));
  EXPECT_EQ(Json(Get("/job?limit=2")).at(4).at("desc").at("jobid"), "4711.0");
}

// ---- Profiles ----

TEST_F(Proxy, ProfilesAreAListAndByCommandAMap) {
  const json::value list = Json(Get("/profiles"));
  ASSERT_EQ(list.as_array().size(), 1u);
  EXPECT_EQ(list.at(0).at("jobid"), "4711.0");
  for (const char* path : {"/profiles/percmd", "/percmd"}) {
    EXPECT_EQ(Json(Get(path)).at("./cavity --grid 512").at(0).at("jobid"), "4711.0") << path;
  }
}

TEST_F(Proxy, PointsAreValuesBySize) {
  const json::value points = Json(Get("/profiles/points?jobid=4712.0"));
  const json::array& memory = points.at("node_memory_MemTotal_bytes").as_array();
  ASSERT_EQ(memory.size(), 1u);  // of the finished one
  EXPECT_EQ(memory[0].at(0), 8);
  EXPECT_EQ(memory[0].at(1), int64_t{256} << 30);
  EXPECT_EQ(Get("/profiles/points").status, 400);
  EXPECT_EQ(Get("/profiles/points?jobid=9.0").status, 404);
}

TEST_F(Proxy, RunsOfACommandAreExtraPsLines) {
  for (const char* target : {"/profiles/extrap?jobid=4712.0", "/model/download?jobid=4711.0"}) {
    const Response answer = Get(target);
    EXPECT_EQ(answer.status, 200) << answer.body;
    std::istringstream lines(answer.body);
    size_t count = 0;
    bool memory = false, walltime = false;
    for (std::string line; std::getline(lines, line); ++count) {
      const json::value sample = json::parse(line);
      EXPECT_EQ(sample.at("params").at("size"), 8);
      EXPECT_EQ(sample.at("metric"), "various");
      if (sample.at("callpath") == "node_memory_MemTotal_bytes") {
        memory = sample.at("value") == int64_t{256} << 30;
      }
      if (sample.at("callpath") == "walltime") walltime = sample.at("value") == 600;
    }
    EXPECT_GT(count, 10u);
    EXPECT_TRUE(memory && walltime) << target;
  }
  EXPECT_EQ(Json(Get("/profiles/extrap"), 400).at("success"), false);
  EXPECT_EQ(Json(Get("/profiles/extrap?jobid=9.0"), 404).at("success"), false);
  EXPECT_EQ(Json(Get("/queue/model"), 400).at("success"), false);
}

TEST_F(Proxy, ModelsOfACommandsRuns) {
  // One run has completed: there is no trend.
  const json::value models = Json(Get("/model/get?jobid=4712.0"));
  bool walltime = false;
  for (const json::value& model : models.as_array()) {
    ASSERT_EQ(model.as_array().size(), 3u);
    if (model.at(0) != "walltime") continue;
    walltime = true;
    EXPECT_EQ(model.at(1), "600");
    EXPECT_EQ(model.at(2), 0);
  }
  EXPECT_TRUE(walltime);
  const json::value line =
      Json(Get("/model/plot?jobid=4711.0&metric=walltime&start=2&end=8&step=3"));
  EXPECT_EQ(line, json::parse("[[2,600],[5,600],[8,600]]"));
  EXPECT_EQ(Json(Post("/model/plot",
                      R"({"jobid":"4711.0","metric":"walltime","start":2,"end":8,"step":3})")),
            line);
  for (const auto& [target, status] :
       {std::pair("/model/get", 400),
        {"/model/get?jobid=9.0", 404},
        {"/model/plot?jobid=4711.0&metric=walltime", 400},
        {"/model/plot?jobid=4711.0&metric=walltime&start=1&end=x", 400},
        {"/model/plot?jobid=4711.0&metric=walltime&start=1&end=1e9", 413},
        {"/model/plot?jobid=4711.0&metric=walltime&start=1&end=9&step=0", 400},
        {"/model/plot?jobid=4711.0&metric=no_such&start=1&end=9", 404}}) {
    EXPECT_EQ(Json(Get(target), status).at("success"), false) << target;
  }
}

// ---- Errors ----

TEST_F(Proxy, EveryErrorHasAnOperation) {
  Request request;
  request.path = "/trace/plot";
  request.method = Method::kPut;
  EXPECT_EQ(Json(Call(source_, request), 405).at("success"), false);
  request.method = Method::kPost;
  request.content_type = "text/plain";
  request.body = "x";
  EXPECT_EQ(Json(Call(source_, request), 415).at("success"), false);
  source_->SetMode(FakeSource::Mode::kFail);
  for (const char* target : {"/job", "/job/list", "/metrics", "/profiles", "/trace/list",
                             "/trace/read?job=4711.0&filter=node_load1", "/topo", "/period"}) {
    const Response answer = Get(target);
    if (answer.status == 200) continue;
    EXPECT_EQ(Json(answer, answer.status).at("success"), false) << target;
  }
}

// ---- Traces ----

TEST_F(Proxy, TracesAreListedWithTheirMetrics) {
  const json::value list = Json(Get("/trace/list"));
  ASSERT_EQ(list.as_array().size(), 3u);
  EXPECT_EQ(list.at(0).at("desc").at("jobid"), "main");
  EXPECT_EQ(list.at(2).at("desc").at("jobid"), "4711.0");
  EXPECT_EQ(list.at(2).at("lastwrite"), 1'799'999'600);
  EXPECT_TRUE(list.at(2).at("size").is_int64());
  const json::value names = Json(Get("/trace/metrics?job=4711.0"));
  EXPECT_THAT(json::serialize(names), HasSubstr("\"node_cpu_seconds_total{mode=\\\"user\\\"}\""));
}

TEST_F(Proxy, ATraceIsReadWithItsExtremes) {
  const json::value gauge = Json(Get("/trace/read?job=4711.0&filter=node_memory_MemTotal_bytes"));
  EXPECT_EQ(gauge.at("info").at("desc").at("jobid"), "4711.0");
  const json::array& points = gauge.at("time_serie").as_array();
  ASSERT_EQ(points.size(), 600u);
  EXPECT_EQ(points[0].at(0), 1'799'999'000);
  const json::value& first = points[0].at(1).at("Gauge");
  EXPECT_EQ(first.at("min"), int64_t{64} << 30);
  EXPECT_EQ(first.at("total"), int64_t{256} << 30);
  EXPECT_EQ(first.at("hits"), 1);
  const json::value counter =
      Json(Get("/trace/read?job=4711.0&points=60&"
               "filter=node_cpu_seconds_total%7Bmode%3D%22user%22%7D"));
  const json::array& few = counter.at("time_serie").as_array();
  EXPECT_LE(few.size(), 61u);
  EXPECT_GE(few.size(), 50u);
  EXPECT_EQ(few[5].at(0).to_number<double>() * 1e6,
            few[5].at(1).at("Counter").at("ts").to_number<double>());
  EXPECT_TRUE(few[5].at(1).at("Counter").at("ts").is_int64());
  EXPECT_GT(few.back().at(1).at("Counter").at("value").to_number<double>(), 4000);
  EXPECT_TRUE(Json(Get("/trace/read?job=4711.0")).at("time_serie").as_array().empty());
}

TEST_F(Proxy, ATraceIsPlottedAndDerived) {
  const json::value line = Json(Get("/trace/plot?jobid=4711.0&filter=solver_iterations_total"));
  ASSERT_EQ(line.as_array().size(), 600u);
  EXPECT_EQ(line.at(10).at(0), 1'799'999'010);
  EXPECT_EQ(line.at(10).at(1), 4 * 120);
  const json::value rate =
      Json(Post("/trace/plot",
                R"({"jobid": "4711.0", "filter": "solver_iterations_total", "derivate": true})"));
  EXPECT_EQ(rate.at(0).at(1), 0);
  EXPECT_EQ(rate.at(10).at(1), 48);
  EXPECT_EQ(Json(Get("/trace/plot?jobid=4711.0&filter=solver_iterations_total&derivate=true")),
            rate);
}

TEST_F(Proxy, AWholeTraceIsJson) {
  const json::value all = Json(Get("/trace/json?jobid=4711.0"));
  EXPECT_EQ(all.at("infos").at("desc").at("jobid"), "4711.0");
  const json::value& metrics = all.at("metrics");
  EXPECT_EQ(metrics.at("solver_iterations_total").at(10).at(0), 10);
  EXPECT_EQ(metrics.at("solver_iterations_total").at(10).at(1), 480);
  EXPECT_EQ(metrics.at("deriv__solver_iterations_total").at(10).at(1), 48);
  const json::object& named = metrics.as_object();
  EXPECT_TRUE(named.contains("node_cpu_seconds_total{mode=\"user\"}"));
  EXPECT_EQ(named.size(), 2 * Json(Get("/trace/metrics?job=4711.0")).as_array().size());
}

TEST_F(Proxy, MainHasTheTraceOfWhatRuns) {
  // One step runs.
  for (const char* target : {"/trace/metrics?job=", "/trace/plot?filter=node_load1&jobid=",
                             "/trace/plot?derivate=1&filter=solver_iterations_total&jobid="}) {
    const json::value main = Json(Get(std::string(target) + "main"));
    EXPECT_EQ(main, Json(Get(std::string(target) + "4712.0"))) << target;
    EXPECT_GT(main.as_array().size(), 10u) << target;
  }
  EXPECT_EQ(Json(Get("/trace/json?jobid=main")).at("metrics"),
            Json(Get("/trace/json?jobid=4712.0")).at("metrics"));
}

TEST_F(Proxy, ATraceHasASizeAndALimit) {
  const json::value running = Json(Get("/trace/size?jobid=4712.0"));
  EXPECT_EQ(running.at(1), 1 << 30);
  const json::value finished = Json(Get("/trace/size?jobid=4711.0"));
  EXPECT_EQ(finished.at(0), finished.at(1));
  // Their page shows the first as a share of the second, which is never 0: not of a step that has
  // just begun either, where it has no limit.
  const json::value begun = Json(Call(std::make_shared<FakeSource>(kNow), [] {
    Request request;
    EXPECT_TRUE(ParseTarget("/trace/size?jobid=main", request).ok());
    return request;
  }()));
  EXPECT_EQ(begun.at(0), 0);
  EXPECT_EQ(begun.at(1), 1);
  EXPECT_EQ(Json(Get("/trace/size"), 400).at("success"), false);
}

TEST_F(Proxy, WhatIsNoTraceIsRefused) {
  const std::pair<const char*, int> cases[] = {
      {"/trace/read", 400},
      {"/trace/read?job=9.0", 404},
      {"/trace/read?job=4711.0&filter=no_such", 404},
      {"/trace/read?job=4711.0&points=1", 400},
      {"/trace/metrics", 400},
      {"/trace/plot?jobid=4711.0", 400},
      {"/trace/plot?filter=node_load1", 400},
      {"/trace/plot?jobid=4711.0&filter=node_load1&derivate=perhaps", 400},
      {"/trace/json", 400},
      {"/trace/json?jobid=9.0", 404},
      {"/trace/list?limit=0", 400},
  };
  for (const auto& [target, status] : cases) {
    const json::value error = Json(Get(target), status);
    EXPECT_EQ(error.at("success"), false) << target;
    EXPECT_EQ(error.at("operation"), error.at("error").at("message")) << target;
  }
  EXPECT_EQ(Post("/trace/plot", "[]").status, 400);
  EXPECT_EQ(Post("/trace/plot", R"({"jobid": 1, "filter": "node_load1"})").status, 400);
}

// ---- Values that are pushed ----

TEST_F(Proxy, ValuesArePushedByGetAndPost) {
  EXPECT_EQ(Get("/push?key=parts_total%7Bkind%3D%22a%22%7D&doc=Parts%20done.").body,
            R"({"operation":"push","success":true})");
  EXPECT_EQ(Get("/set?key=parts_total%7Bkind%3D%22a%22%7D&value=3.5").body,
            R"({"operation":"set","success":true})");
  EXPECT_EQ(Post("/accumulate", R"({"key": "heat", "value": "2", "job": "4712.0"})").body,
            R"({"operation":"inc","success":true})");
  EXPECT_EQ(Post("/push", R"({"key": "heat", "value": 2, "type": "gauge"})").status, 200);
  ASSERT_EQ(source_->pushed.size(), 4u);
  const PushedValue& first = source_->pushed[0];
  EXPECT_EQ(first.kind, PushedValue::Kind::kRegister);
  EXPECT_EQ(first.series.metric.name, "parts_total");
  EXPECT_EQ(first.series.metric.help, "Parts done.");
  EXPECT_EQ(first.series.metric.type, MetricType::kCounter);
  EXPECT_EQ(*first.series.tags.Find("kind"), "a");
  EXPECT_EQ(source_->pushed[1].kind, PushedValue::Kind::kSet);
  EXPECT_EQ(source_->pushed[1].value, 3.5);
  EXPECT_EQ(source_->pushed[2].kind, PushedValue::Kind::kAdd);
  EXPECT_EQ(source_->pushed[2].value, 2);
  EXPECT_EQ(source_->pushed[3].series.metric.type, MetricType::kGauge);
}

TEST_F(Proxy, WhatCannotBePushedIsRefused) {
  for (const char* target :
       {"/push", "/push?key=", "/push?key=1a", "/push?key=a%7Bhost%3Dn1%7D",
        "/push?key=a%7Bjob%3Dx%7D", "/push?key=a%7Bb%3D%22c%22", "/push?key=a&type=histogram",
        "/push?key=a&doc=b%0Ac", "/set?key=a", "/set?key=a&value=", "/set?key=a&value=x",
        "/set?key=a&value=nan", "/set?key=a&value=1e999", "/accumulate?key=a&value=inf"}) {
    EXPECT_EQ(Json(Get(target), 400).at("success"), false) << target;
  }
  EXPECT_EQ(Get("/set?key=a&value=1&job=4711.0").status, 404);
  EXPECT_EQ(Post("/set", "3").status, 400);
  EXPECT_EQ(Post("/set", R"({"key": ["a"], "value": "1"})").status, 400);
  EXPECT_TRUE(source_->pushed.empty());
}

TEST_F(Proxy, TheStoreTakesPushedValuesAsPoints) {
  const auto store = std::make_shared<PutStore>();
  const auto get = [&](std::string_view target) {
    Request request;
    EXPECT_TRUE(ParseTarget(target, request).ok());
    return Call(store, request);
  };
  EXPECT_EQ(get("/set?key=parts_total&value=1").status, 400);  // it was not registered
  EXPECT_EQ(get("/push?key=parts_total").status, 200);
  EXPECT_EQ(get("/set?key=parts_total&value=5").status, 200);
  EXPECT_EQ(get("/push?key=parts_total").status, 200);  // stays as it is
  EXPECT_EQ(get("/accumulate?key=parts_total&value=2").status, 200);
  std::promise<double> last;
  QuerySpec spec;
  spec.metric = "parts_total";
  spec.aggregator = Aggregator::kNone;
  spec.end = Clock::System().Now() + kSecond;
  spec.start = spec.end - 3600 * kSecond;
  store->Query(spec, [&](Result<Answer> answer) {
    last.set_value(answer->results.at(0).points.back().value);
  });
  EXPECT_EQ(last.get_future().get(), 7);
}

TEST(PushedValues, TravelAsBytes) {
  PushedValue value;
  value.kind = PushedValue::Kind::kAdd;
  value.series = *ParsePushedKey(R"(parts_total{kind="a,b",shape=round})");
  value.series.metric.help = "Parts.";
  value.value = -1.5;
  const std::string bytes = EncodePushed(value);
  const Result<PushedValue> back = DecodePushed(bytes);
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(*back, value);
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(DecodePushed(bytes.substr(0, size)).ok()) << size;
  }
  EXPECT_FALSE(DecodePushed(bytes + "x").ok());
  value.value = HUGE_VAL;
  EXPECT_FALSE(DecodePushed(EncodePushed(value)).ok());
  value.value = 1;
  value.series.tags.Set("host", "n1");
  EXPECT_FALSE(DecodePushed(EncodePushed(value)).ok());
}

// ---- The tree ----

TEST_F(Proxy, TheTreeIsPairs) {
  const std::string pairs = R"([["login1:head","n1"],["n1","n2"]])";
  EXPECT_EQ(Get("/topo").body, pairs);
  EXPECT_EQ(Get("/topo?job=4712.0").body, pairs);
  EXPECT_EQ(Json(Get("/topo?job=4711.0"), 404).at("success"), false);
}

// A step more that runs.
class TwoRun final : public FakeSource {
 public:
  TwoRun() : FakeSource(kNow) {}
  void Jobs(size_t limit, JobsCallback callback) const override {
    FakeSource::Jobs(limit, [&](Result<std::vector<JobDescription>> jobs) {
      jobs->insert(jobs->begin(), jobs->front());
      jobs->front().id = JobStep::Parse("4713.0+1");
      callback(std::move(jobs));
    });
  }
  void Tree(const JobStep&, TreeCallback callback) const override {
    callback(std::vector<TreeEdge>{{"login1:head", "n1"}});
  }
};

// metric-proxy's page makes a diagram of the names, by mermaid, which refuses some characters.
TEST_F(Proxy, TheTreesOfSeveralStepsHaveNamesThatADiagramTakes) {
  const json::value pairs = Json(Call(std::make_shared<TwoRun>(), [] {
    Request request;
    request.path = "/topo";
    return request;
  }()));
  ASSERT_EQ(pairs.as_array().size(), 2u);
  EXPECT_EQ(pairs.at(0).at(0), "4713.0+1/login1:head");
  EXPECT_EQ(pairs.at(1).at(1), "4712.0/n1");
  for (const json::value& pair : pairs.as_array()) {
    for (const json::value& name : pair.as_array()) {
      EXPECT_THAT(name.as_string().c_str(), testing::MatchesRegex("[A-Za-z0-9+._/:-]+"));
    }
  }
}

// ---- Prometheus ----

TEST_F(Proxy, MetricsAreNegotiated) {
  Request request;
  ASSERT_TRUE(ParseTarget("/metrics?job=4712.0", request).ok());
  request.accept = "application/openmetrics-text;version=1.0.0,text/plain;q=0.5";
  const Response open = Call(source_, request);
  EXPECT_THAT(open.content_type, HasSubstr("application/openmetrics-text; version=1.0.0"));
  EXPECT_TRUE(open.body.ends_with("# EOF\n"));
  EXPECT_THAT(open.body, HasSubstr("# TYPE node_cpu_seconds counter\n# UNIT node_cpu_seconds "
                                   "seconds\n"));
  EXPECT_THAT(open.body, HasSubstr(R"(node_cpu_seconds_created{job="4712.0",mode="user"} )"));
  EXPECT_THAT(Get("/metrics?job=4712.0").content_type, HasSubstr("version=0.0.4"));
}

TEST_F(Proxy, MetricsOfEveryNode) {
  const std::string text = Get("/metrics?scope=node").body;
  for (const char* host : {"n1", "n2"}) {
    EXPECT_THAT(text, HasSubstr(std::string(R"(node_memory_MemTotal_bytes{host=")") + host +
                                R"(",job="4712.0"} 68719476736)"));
    EXPECT_THAT(text,
                HasSubstr(std::string(R"(task_threads{host=")") + host + R"(",job="4712.0"} 4)"));
  }
  const std::string one = Get("/metrics?job=Node:%20n1").body;
  EXPECT_THAT(one, HasSubstr(R"(host="n1")"));
  EXPECT_THAT(one, testing::Not(HasSubstr(R"(host="n2")")));
  // A finished step has what its nodes measured last.
  EXPECT_THAT(Get("/metrics?job=4711.0&scope=node").body,
              HasSubstr(R"(task_threads{host="n4",job="4711.0"} 4)"));
  EXPECT_EQ(Get("/metrics?scope=all").status, 400);
}

TEST_F(Proxy, MainsMetricsAreOneJob) {
  const std::string text = Get("/metrics/?job=main").body;
  EXPECT_THAT(text, HasSubstr(R"(node_memory_MemTotal_bytes{job="main"} 137438953472)"));
  EXPECT_THAT(text, testing::Not(HasSubstr("4712")));
}

TEST_F(Proxy, RunningStepsAreDiscovered) {
  const json::value targets = Json(Get("/api/sd?scope=node"));
  ASSERT_EQ(targets.as_array().size(), 1u);
  EXPECT_EQ(targets.at(0).at("targets").at(0), "localhost:4242");
  const json::value& labels = targets.at(0).at("labels");
  EXPECT_EQ(labels.at("__param_job"), "4712.0");
  EXPECT_EQ(labels.at("__param_scope"), "node");
  EXPECT_EQ(labels.at("__metrics_path__"), "/metrics");
  // Of a site's server, which shows the archives of several users.
  Request request;
  request.path = "/api/sd";
  request.host = "sonde.example.org";
  request.prefix = "/user/ada";
  const json::value others = Json(Call(source_, request));
  EXPECT_EQ(others.at(0).at("targets").at(0), "sonde.example.org");
  EXPECT_EQ(others.at(0).at("labels").at("__metrics_path__"), "/user/ada/metrics");
}

}  // namespace
}  // namespace sonde::web::web_proxy_test
