// Profiles as CSV, JSON lines and traces: every value exactly, in bounded windows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <boost/json.hpp>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <sstream>

#include "forward/formats/table.h"
#include "profiles/archive/open_archive.h"
#include "profiles/json/parse.h"
#include "profiles/live/live_archive.h"
#include "profiles/records/keys.h"
#include "profiles_fixture.h"
#include "stored_step.h"

namespace sonde::forward {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

class TableTest : public testing::Test {
 protected:
  // Node n2's task group; its tasks' ranks are told from 2 on.
  void PutTasks(const std::vector<double>& cpu, const std::vector<double>& memory) {
    const auto schema = Schema::Make(
        {TestSeries("task_cpu_seconds_total", MetricType::kCounter, {{"task", "0"}}),
         TestSeries("task_resident_memory_bytes", MetricType::kGauge, {{"task", "0"}})});
    std::vector<double> columns = cpu;
    columns.insert(columns.end(), memory.begin(), memory.end());
    const auto rows = static_cast<int>(cpu.size());
    ASSERT_TRUE(live_
                    ->PutBlock({1, "task+2", ++sequence_}, *schema,
                               MakeBlock(*schema, TestTimes(0, rows), columns))
                    .ok());
  }
  void End(const StepMoments& moments = {}) {
    Profile profile;
    profile.job = TestJob();
    profile.job.state = EndState::kCompleted;
    profile.job.end = kTestStart + 20 * kSecond;
    profile.moments = moments;
    ASSERT_TRUE(live_->PutProfile(profile).ok());
    ASSERT_TRUE(live_->Finish().ok());
    ASSERT_TRUE(OpenArchive(dir_.path()).ok());
  }
  std::string Write(const std::string& to, size_t values = kWindowValues) {
    const auto archive = *Archive::Open(dir_.path());
    const Destination destination = *ParseDestination(to);
    std::string text;
    const auto sink = MakeTableSink(destination.protocol, [&](std::string_view piece) {
      text += piece;
      return Status();
    });
    const auto entry = archive->Entry(keys::ProfileKey(TestJob()));
    const auto written = WriteTable(*archive, *entry, destination, *sink, nullptr, values);
    EXPECT_TRUE(written.ok()) << written.status().message();
    return text;
  }
  static std::vector<std::string> Lines(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
  }
  static std::string Time(int tick) { return std::to_string(kTestStart + tick * kSecond); }

  TempDir dir_;
  std::unique_ptr<LiveArchive> live_ = *LiveArchive::Create(dir_.path(), TestJob());
  uint64_t sequence_ = 0;
};

TEST_F(TableTest, CsvHasEveryValueAsItIs) {
  const double missing = std::bit_cast<double>(uint64_t{0x7ff8000000000000});
  const double other_nan = std::bit_cast<double>(uint64_t{0x7ff8000000000001});
  PutTasks({0.1 + 0.2, missing, 5e-324}, {-0.0, other_nan, -kInfinity});
  End();
  const auto lines = Lines(Write("x.csv scope=node"));
  ASSERT_EQ(lines.size(), 4u);
  // The rank in the step, and the host.
  EXPECT_EQ(lines[0],
            "time,task_cpu_seconds_total/host=n2/task=2,task_resident_memory_bytes/host=n2/task=2");
  EXPECT_EQ(lines[1], Time(1) + ",0.30000000000000004,-0");
  EXPECT_EQ(lines[2], Time(2) + ",,nan");
  EXPECT_EQ(lines[3], Time(3) + ",5e-324,-inf");
}

TEST_F(TableTest, NodesStandSideBySideWhateverTheWindow) {
  ASSERT_TRUE(PutNodeBlock(*live_, 0, 1, 0, 10).ok());
  ASSERT_TRUE(PutNodeBlock(*live_, 1, 1, 5, 10).ok());
  End();
  const std::string whole = Write("x.csv scope=node");
  const auto lines = Lines(whole);
  ASSERT_EQ(lines.size(), 16u);
  EXPECT_EQ(lines[1], Time(1) + ",1,1000,,");
  EXPECT_EQ(lines[6], Time(6) + ",6,1000,12,2000");
  EXPECT_EQ(lines[15], Time(15) + ",,,30,2000");
  for (const size_t values : {1, 4, 12, 23}) EXPECT_EQ(Write("x.csv scope=node", values), whole);
}

// Whose blocks are read one record after the other, whichever nodes are in it.
TEST(TableOfManyNodes, HasTheirColumnsInTheOrderOfTheNodes) {
  const auto csv = [](bool joined) {
    StoredStep step;
    step.Put({0, 1, 0, 2});
    std::vector<std::vector<NodeBlock>> records(3);
    for (uint32_t node = 0; node < kManyNodes; ++node) {
      const NodeBlock block{node, 2, 2, 3};
      if (joined) {
        records[(node * 7) % records.size()].push_back(block);
      } else {
        step.Put(block);
      }
    }
    if (joined) std::ranges::for_each(records, [&](const auto& one) { step.PutJoined(one); });
    const auto archive = step.Finish();
    std::string text;
    const auto sink = MakeCsv([&](std::string_view piece) {
      text += piece;
      return Status();
    });
    const Destination to = *ParseDestination("x.csv scope=node metrics=*_3_*");
    EXPECT_TRUE(WriteTable(*archive, *archive->Entry(step.key()), to, *sink).ok());
    return text;
  };
  const std::string apart = csv(false);
  EXPECT_THAT(apart, StartsWith("time,node_thing_3_total/host=n1,node_thing_3_total/host=n2,"));
  EXPECT_EQ(csv(true), apart);
}

TEST_F(TableTest, OfTooManyColumnsSaysWhatToNameInstead) {
  for (const uint32_t node : {0, 1}) ASSERT_TRUE(PutNodeBlock(*live_, node, 1, 0, 2).ok());
  End();
  const auto archive = *Archive::Open(dir_.path());
  const auto entry = archive->Entry(keys::ProfileKey(TestJob()));
  const auto write = [&](const std::string& to, size_t columns) {
    size_t bytes = 0;
    const auto sink = MakeCsv([&](std::string_view piece) {
      bytes += piece.size();
      return Status();
    });
    const auto written =
        WriteTable(*archive, *entry, *ParseDestination(to), *sink, nullptr, kWindowValues, columns);
    EXPECT_EQ(written.ok(), bytes > 0) << "nothing is written of a table that is none";
    EXPECT_EQ(CheckWidth(*archive, *entry, *ParseDestination(to), columns).ok(), written.ok());
    return written.status();
  };
  EXPECT_TRUE(write("x.csv scope=node", 4).ok());
  const Status status = write("x.csv scope=node", 3);
  EXPECT_EQ(status.code(), Code::kLimit);
  EXPECT_THAT(
      std::string(status.message()),
      testing::AllOf(HasSubstr("3 columns at most"), HasSubstr("--metrics"), HasSubstr("--node")));
  EXPECT_TRUE(write("x.csv scope=node metrics=task_cpu*", 3).ok());
  EXPECT_TRUE(write("x.csv node=n2", 3).ok());
}

TEST_F(TableTest, TheStepsNumbersAreThoseOfTheReport) {
  ASSERT_TRUE(PutReducedBlock(*live_, 1, 0, 2).ok());
  End();
  EXPECT_THAT(Lines(Write("x.csv")),
              ElementsAre("time,task_cpu_seconds_total/mode=user,task_resident_memory_bytes",
                          Time(1) + ",3,3000", Time(2) + ",6,3000"));
}

TEST_F(TableTest, ChoosesMetricsHostsAndTimes) {
  ASSERT_TRUE(PutNodeBlock(*live_, 0, 1, 0, 10).ok());
  ASSERT_TRUE(PutNodeBlock(*live_, 1, 1, 0, 10).ok());
  End();
  EXPECT_EQ(Lines(Write("x.csv node=n2 metrics=*memory*"))[0],
            "time,task_resident_memory_bytes/host=n2");
  EXPECT_EQ(Lines(Write("x.csv node=!n2 metrics=!*memory*"))[0],
            "time,task_cpu_seconds_total/host=n1/mode=user");
  EXPECT_EQ(Lines(Write("x.csv node=nobody")).size(), 1u);
}

TEST_F(TableTest, OfAStepGaugesHaveTheMeanAndCountersWhatTheyHadComeTo) {
  PutTasks({1, 2, 3, 4, 5}, {10, 20, 60, 0.1, 0.1});
  End();
  // The times of the start are multiples of 2 s and so are those of the rows.
  static_assert(kTestStart % (2 * kSecond) == 0);
  const std::string whole = Write("x.csv scope=node step=2s");
  const auto lines = Lines(whole);
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[1], Time(2) + ",2,15");
  EXPECT_EQ(lines[2], Time(4) + ",4,30.05");
  EXPECT_EQ(lines[3], Time(6) + ",5,0.1");
  EXPECT_EQ(Write("x.csv scope=node step=2s", 1), whole);
}

TEST_F(TableTest, JsonLinesReadBackExactly) {
  const double missing = std::bit_cast<double>(uint64_t{0x7ff8000000000000});
  PutTasks({0.1 + 0.2, missing, 1e300}, {-0.0, kInfinity, std::nan("7")});
  End();
  const auto lines = Lines(Write("x.jsonl scope=node"));
  ASSERT_EQ(lines.size(), 3u);
  const auto head = *ParseJson(lines[0], "line");
  EXPECT_EQ(head.at("description").at("command"), "");
  EXPECT_EQ(head.at("description").at("nodes").as_array().size(), 2u);
  const auto cpu = *ParseJson(lines[1], "line");
  EXPECT_EQ(cpu.at("job"), "123.0");
  EXPECT_EQ(cpu.at("metric"), "task_cpu_seconds_total");
  EXPECT_EQ(cpu.at("type"), "counter");
  EXPECT_EQ(cpu.at("unit"), "seconds");
  EXPECT_EQ(cpu.at("tags").at("task"), "2");
  EXPECT_EQ(cpu.at("times").as_array().size(), 2u);
  EXPECT_EQ(cpu.at("times").at(1).to_number<int64_t>(), kTestStart + 3 * kSecond);
  EXPECT_EQ(cpu.at("values").at(0).as_double(), 0.1 + 0.2);
  EXPECT_EQ(cpu.at("values").at(1).as_double(), 1e300);
  EXPECT_THAT(lines[2], HasSubstr("\"values\":[-0,\"inf\",\"nan\"]"));
}

// What the trace event format asks of each event.
void CheckEvent(const boost::json::object& event, std::map<std::string, int>& open) {
  const std::string kind(event.at("ph").as_string());
  ASSERT_TRUE(event.at("name").is_string());
  ASSERT_TRUE(event.at("pid").is_int64());
  ASSERT_TRUE(event.at("tid").is_int64());
  if (kind == "M") {
    const auto& name = event.at("name").as_string();
    ASSERT_TRUE(name == "process_name" || name == "thread_name");
    ASSERT_TRUE(event.at("args").at("name").is_string());
    return;
  }
  ASSERT_TRUE(event.at("ts").is_number());
  if (kind == "X") {
    ASSERT_GE(event.at("dur").to_number<double>(), 0);
  } else if (kind == "i") {
    const auto& scope = event.at("s").as_string();
    ASSERT_TRUE(scope == "g" || scope == "p" || scope == "t");
  } else if (kind == "C") {
    ASSERT_FALSE(event.at("args").as_object().empty());
    for (const auto& [key, value] : event.at("args").as_object()) ASSERT_TRUE(value.is_number());
  } else {
    ASSERT_TRUE(kind == "b" || kind == "e") << kind;
    const std::string id =
        std::string(event.at("cat").as_string()) + "/" + boost::json::serialize(event.at("id"));
    open[id] += kind == "b" ? 1 : -1;
    ASSERT_GE(open[id], 0) << "ends before it begins";
  }
}

TEST_F(TableTest, ATraceIsOneOfTheTraceEventFormat) {
  StepMoments moments;
  moments.phases.push_back(
      {"solve \"x\"", kTestStart + kSecond, kTestStart + 2 * kSecond + 7, 0, 1, 1, {0, 2}});
  moments.phases.push_back({"write", kTestStart + kSecond, 0, 0, 1, 0, {}});  // never ended
  moments.remarks.push_back({"half way", kTestStart + kSecond, kTestStart + kSecond, 3, {1, 3}});
  moments.alarms.push_back({"memory",
                            "critical",
                            "n2: full",
                            {{"host", "n2"}},
                            kTestStart + kSecond,
                            kTestStart + 3 * kSecond,
                            0.97,
                            {1, 2}});
  moments.alarms.push_back(
      {"memory", "warning", "n1: full", {}, kTestStart + 2 * kSecond, 0, std::nan(""), {}});
  PutTasks({1, 3, 3, std::nan("9")}, {10, kInfinity, 20, 30});
  End(moments);
  const auto trace = *ParseJson(Write("x.trace.json scope=node"), "trace");
  EXPECT_EQ(trace.at("otherData").at("start_ns").to_number<int64_t>(), kTestStart);
  std::map<std::string, int> open;
  std::map<std::string, std::vector<std::pair<double, double>>> counters;
  std::set<std::string> spans;
  std::map<int64_t, std::string> processes;
  for (const auto& value : trace.at("traceEvents").as_array()) {
    const auto& event = value.as_object();
    ASSERT_NO_FATAL_FAILURE(CheckEvent(event, open)) << boost::json::serialize(value);
    const std::string name(event.at("name").as_string());
    if (name == "process_name") {
      processes[event.at("pid").as_int64()] = event.at("args").at("name").as_string();
    }
    if (event.at("ph") == "C") {
      counters[processes.at(event.at("pid").as_int64()) + " " + name].emplace_back(
          event.at("ts").to_number<double>(), event.at("args").at("value").to_number<double>());
    }
    if (event.at("ph") == "X") {
      spans.insert(name + " " + boost::json::serialize(event.at("ts")) + " " +
                   boost::json::serialize(event.at("dur")));
    }
  }
  for (const auto& [id, count] : open) EXPECT_EQ(count, 0) << id << " does not end";
  EXPECT_EQ(open.size(), 2u);
  EXPECT_EQ(processes.size(), 2u);
  EXPECT_THAT(spans, ElementsAre(StartsWith("solve \"x\" 1E6 1.000000007E6"),
                                 StartsWith("write 1E6 1.9E7")));
  // A rate from the sample before on; what is not finite is left out.
  using Point = std::pair<double, double>;
  EXPECT_THAT(counters["n2 task_cpu_seconds_total{task=\"2\"} /s"],
              ElementsAre(Point(1e6, 2), Point(2e6, 0)));
  EXPECT_THAT(counters["n2 task_resident_memory_bytes{task=\"2\"}"],
              ElementsAre(Point(1e6, 10), Point(3e6, 20), Point(4e6, 30)));
}

TEST_F(TableTest, FilesAreToldByTheirNames) {
  const std::map<std::string, std::pair<Protocol, std::string>> expected = {
      {"a.csv", {Protocol::kCsv, "a.csv"}},
      {"csv:-", {Protocol::kCsv, "-"}},
      {"csv:out/", {Protocol::kCsv, "out/"}},
      {"a.jsonl", {Protocol::kJsonLines, "a.jsonl"}},
      {"a.trace.json", {Protocol::kTrace, "a.trace.json"}},
      {"trace:a.json", {Protocol::kTrace, "a.json"}},
      {"a.sonde", {Protocol::kProfile, "a.sonde"}},
      {"openmetrics:a.csv", {Protocol::kOpenMetrics, "a.csv"}},
      {"file:a.csv", {Protocol::kOpenMetrics, "a.csv"}},
      {"-", {Protocol::kOpenMetrics, "-"}},
  };
  for (const auto& [text, to] : expected) {
    const auto parsed = ParseDestination(text);
    ASSERT_TRUE(parsed.ok()) << text;
    EXPECT_EQ(parsed->protocol, to.first) << text;
    EXPECT_EQ(parsed->url, to.second) << text;
    EXPECT_TRUE(IsFile(parsed->protocol));
  }
  EXPECT_EQ(ParseDestination("my files/a b.csv", "step=10s")->url, "my files/a b.csv");
  for (const char* wrong : {"a.json", "csv:", "a.om step=10s", "a.csv step=0s", "a.csv step=x",
                            "a.csv node=", "a.csv node=n1 scope=job", "a.sonde step=1s"}) {
    EXPECT_EQ(ParseDestination(wrong).status().code(), Code::kInvalid) << wrong;
  }
}

}  // namespace
}  // namespace sonde::forward
