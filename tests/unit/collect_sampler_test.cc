// The sampler: rows and schemas of a level, counters from the step's start, no allocation.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "daemon/collect/registry.h"
#include "daemon/collect/sampler.h"
#include "tests/unit/collect_tree.h"
#include "tests/unit/paths.h"

// Counted in collect_allocations.cc.
extern std::atomic<size_t> allocations;

namespace sonde::collect::collect_sampler_test {
namespace {

using testing::IsNan;

class SamplerTest : public testing::Test {
 protected:
  SamplerTest() { WriteNet({{"eth0", 1000}}); }
  void WriteNet(const std::vector<std::pair<std::string, int>>& devices) const {
    std::string text;
    for (const auto& [name, bytes] : devices) {
      text += fmt::format("{}: {} 0 0 0 0 0 0 0 5 0 0 0 0 0 0 0\n", name, bytes);
    }
    tree_.Write("proc/net/dev", text);
  }
  void WriteForks(uint64_t forks) const {
    tree_.Write("proc/stat",
                fmt::format("cpu  1 2 3 4 5 6 7 8\nprocesses {}\nprocs_running 3\n", forks));
  }
  void Sample() { sampler_.Sample(now_ += 100 * kSecond); }
  double Os(std::string_view name) {
    const size_t i = Find(sampler_.schema(Group::kOs)->series(), name);
    return i < sampler_.row(Group::kOs).size() ? sampler_.row(Group::kOs)[i] : -1;
  }
  static constexpr std::string_view kReceived = "node_network_receive_bytes_total{device=\"eth0\"}";

  Tree tree_;
  Sampler sampler_{{.level = 2, .events = "", .roots = tree_.roots()}};
  Nanos now_ = kSecond;
};

TEST_F(SamplerTest, CountersCountFromTheStepsStart) {
  WriteForks(5'000'000'000);
  Sample();
  EXPECT_EQ(Os("node_forks_total"), 0);
  EXPECT_EQ(Os("node_procs_running"), 3);
  WriteForks(5'000'000'042);
  Sample();
  EXPECT_EQ(Os("node_forks_total"), 42);
}

// 48.3 s less 48.01 s is 0.28999999999999915 in doubles.
TEST_F(SamplerTest, TimesAreTheDoublesClosestToTheirDecimals) {
  tree_.Write("proc/stat", "cpu  4801 2 3 4 5 6 7 8\n");
  Sample();
  tree_.Write("proc/stat", "cpu  4830 2 3 4 5 6 7 8\n");
  Sample();
  EXPECT_EQ(Os("node_cpu_seconds_total{mode=\"user\"}"), 0.29);
}

TEST_F(SamplerTest, ACounterThatFallsGoesOnFromWhereItWas) {
  Sample();
  WriteNet({{"eth0", 1500}});
  Sample();
  EXPECT_EQ(Os(kReceived), 500);
  WriteNet({{"eth0", 20}});
  Sample();
  EXPECT_EQ(Os(kReceived), 500);
  WriteNet({{"eth0", 50}});
  Sample();
  EXPECT_EQ(Os(kReceived), 530);
}

TEST_F(SamplerTest, ADeviceThatComesBackGoesOnAndOthersAreNotDisturbed) {
  WriteNet({{"eth0", 1000}, {"ib0", 70}});
  Sample();
  WriteNet({{"eth0", 1100}, {"ib0", 90}});
  Sample();
  const Schema::Ptr both = sampler_.schema(Group::kOs);
  WriteNet({{"eth0", 1200}});
  Sample();
  EXPECT_EQ(Os(kReceived), 200);
  EXPECT_EQ(sampler_.schema(Group::kOs)->size(), both->size() - 13);
  WriteNet({{"ib0", 95}, {"eth0", 1300}});
  Sample();
  EXPECT_EQ(Os(kReceived), 300);
  EXPECT_EQ(Os("node_network_receive_bytes_total{device=\"ib0\"}"), 25);
}

TEST_F(SamplerTest, TheSchemaStaysWhileTheSeriesDo) {
  Sample();
  const Schema::Ptr first = sampler_.schema(Group::kOs);
  WriteNet({{"eth0", 1200}});
  Sample();
  EXPECT_EQ(sampler_.schema(Group::kOs), first);
  EXPECT_EQ(sampler_.schema(Group::kTask)->size(), 0u);
  ASSERT_TRUE(sampler_.tasks().AddTask(0, 1).ok());
  Sample();
  EXPECT_EQ(sampler_.schema(Group::kOs), first);
  EXPECT_EQ(sampler_.schema(Group::kTask)->size(), sampler_.row(Group::kTask).size());
  EXPECT_GT(sampler_.row(Group::kTask).size(), 0u);
}

TEST_F(SamplerTest, WhatCannotBeReadIsMissingNotZero) {
  Sample();
  EXPECT_THAT(Os("node_load1"), IsNan());
  EXPECT_THAT(Os("node_forks_total"), IsNan());
}

TEST_F(SamplerTest, WhatTheDaemonSentAndKeepsIsTold) {
  const auto value = [&](Sampler& sampler, std::string_view name) {
    for (const auto& source : sampler.sources()) {
      if (Has(*source, name)) return Value(*source, name);
    }
    return kMissing;
  };
  for (const int level : {1, 4}) {
    Sampler sampler({.level = level, .events = "", .roots = tree_.roots()});
    sampler.SetDaemon({.sent_bytes = 1,
                       .queued_bytes = 2,
                       .stored_bytes = 3,
                       .unacknowledged_bytes = 4,
                       .left_out_series = 6,
                       .dropped_rows = 5});
    sampler.Sample(kSecond);
    EXPECT_EQ(value(sampler, "sonde_sent_bytes_total"), 1);
    EXPECT_EQ(value(sampler, "sonde_db_bytes"), 3);
    if (level < 4) {
      EXPECT_THAT(value(sampler, "sonde_queued_bytes"), IsNan());
      continue;
    }
    EXPECT_EQ(value(sampler, "sonde_queued_bytes"), 2);
    EXPECT_EQ(value(sampler, "sonde_unacknowledged_bytes"), 4);
    EXPECT_EQ(value(sampler, "sonde_dropped_samples_total"), 5);
    EXPECT_EQ(value(sampler, "sonde_left_out_series_total"), 6);
  }
}

TEST_F(SamplerTest, SondesOwnCostIsCounted) {
  Sample();
  Sample();
  sampler_.CountLateTick();
  sampler_.CountSkippedTicks(2);
  Sample();
  EXPECT_EQ(Os("sonde_samples_total"), 2);
  EXPECT_EQ(Os("sonde_late_ticks_total"), 1);
  EXPECT_EQ(Os("sonde_skipped_ticks_total"), 2);
  EXPECT_GT(Os("sonde_sample_seconds_total"), 0);
  EXPECT_GT(Os("sonde_cpu_seconds_total"), 0);
}

class SlowSources : public testing::Test {
 protected:
  void Write(uint64_t faults) const {
    tree_.Write("proc/vmstat", fmt::format("pgfault {}\npgmajfault 3\n", faults));
    tree_.Write("proc/stat", fmt::format("cpu  1 2 3 4 5 6 7 8\nctxt {}\n", faults));
  }
  // The faults of each of these ticks; the text before tick t has 1000 + t.
  std::vector<double> Faults(Sampler& sampler, const std::vector<Nanos>& ticks) const {
    std::vector<double> faults;
    for (const Nanos tick : ticks) {
      Write(1000 + static_cast<uint64_t>(tick / kSecond));
      sampler.Sample(tick);
      faults.push_back(Get(sampler, "node_vmstat_pgfault_total"));
      EXPECT_FALSE(std::isnan(Get(sampler, "node_context_switches_total"))) << "read at each tick";
    }
    return faults;
  }
  static double Get(const Sampler& sampler, std::string_view name) {
    const size_t i = Find(sampler.schema(Group::kOs)->series(), name);
    return i < sampler.row(Group::kOs).size() ? sampler.row(Group::kOs)[i] : -1;
  }
  static std::vector<Nanos> Seconds(const std::vector<double>& seconds) {
    std::vector<Nanos> ticks;
    ticks.reserve(seconds.size());
    for (const double s : seconds) ticks.push_back(static_cast<Nanos>(s * kSecond));
    return ticks;
  }

  Tree tree_;
};

TEST_F(SlowSources, AreReadFirstAtMultiplesOfTheirPeriodAndLast) {
  Sampler sampler({.level = 2, .events = "", .roots = tree_.roots(), .period = kSecond});
  const std::vector<double> faults =
      Faults(sampler, Seconds({107.3, 108, 109, 110, 111, 119, 120, 121}));
  EXPECT_THAT(faults, testing::ElementsAre(0, IsNan(), IsNan(), 3, IsNan(), IsNan(), 13, IsNan()));
  Write(2000);
  sampler.Sample(static_cast<Nanos>(121.5 * kSecond), Sampler::Extent::kAll);
  EXPECT_EQ(Get(sampler, "node_vmstat_pgfault_total"), 2000 - 1107);
}

TEST_F(SlowSources, AreReadAtTheFirstTickOfEachSpanWhateverThePeriod) {
  Sampler odd({.level = 2, .events = "", .roots = tree_.roots(), .period = 3 * kSecond});
  EXPECT_THAT(Faults(odd, Seconds({99, 102, 105, 108, 111, 114, 117, 120})),
              testing::ElementsAre(0, 3, IsNan(), IsNan(), 12, IsNan(), IsNan(), 21));
  Sampler fast({.level = 2, .events = "", .roots = tree_.roots(), .period = kSecond / 10});
  EXPECT_THAT(Faults(fast, Seconds({109.9, 110, 110.1, 119.9, 120, 120.1})),
              testing::ElementsAre(0, 1, IsNan(), IsNan(), 11, IsNan()));
  Sampler rare({.level = 2, .events = "", .roots = tree_.roots(), .period = 60 * kSecond});
  EXPECT_THAT(Faults(rare, Seconds({60, 120, 180})), testing::ElementsAre(0, 60, 120));
}

// A node that was too busy for a tick does not take the next one alone.
TEST_F(SlowSources, ATickThatWasSkippedIsNotMadeUpFor) {
  Sampler sampler({.level = 2, .events = "", .roots = tree_.roots(), .period = kSecond});
  EXPECT_THAT(Faults(sampler, Seconds({108, 109, 112, 113, 120})),
              testing::ElementsAre(0, IsNan(), IsNan(), IsNan(), 12));
}

TEST_F(SlowSources, LevelFourReadsThemAtEveryTick) {
  Sampler sampler({.level = 4, .events = "", .roots = tree_.roots(), .period = kSecond});
  EXPECT_THAT(Faults(sampler, Seconds({101, 102, 103})), testing::ElementsAre(0, 1, 2));
}

TEST_F(SlowSources, TheTimeOfEachSourceIsCountedAtLevelFour) {
  Sampler sampler({.level = 4, .events = "", .roots = tree_.roots(), .period = kSecond});
  Faults(sampler, Seconds({101, 102, 103}));
  const double own = Get(sampler, "sonde_source_seconds_total{source=\"vmstat\"}");
  EXPECT_GT(own, 0);
  double sum = 0;
  for (const auto& source : sampler.sources()) {
    sum += Get(sampler, fmt::format("sonde_source_seconds_total{{source=\"{}\"}}", source->name()));
  }
  EXPECT_LE(sum, Get(sampler, "sonde_sample_seconds_total"));
  Sampler two({.level = 2, .events = "", .roots = tree_.roots(), .period = kSecond});
  two.Sample(kSecond);
  EXPECT_EQ(Get(two, "sonde_source_seconds_total{source=\"vmstat\"}"), -1);
}

TEST(SamplerLevels, ALevelHasWhatItsMetricsDeclare) {
  size_t before = 0;
  for (int level = 1; level <= 4; ++level) {
    Sampler sampler({.level = level, .events = "page-faults", .roots = {}});
    if (sampler.perf() != nullptr) {
      for (const launch::PerfEvent& e : sampler.perf()->events()) EXPECT_EQ(e.leader, 1u);
    }
    EXPECT_EQ(sampler.perf() != nullptr, level >= 3);
    ASSERT_TRUE(sampler.tasks().AddTask(0, getpid()).ok());
    sampler.Sample(kSecond);
    for (const Group group : {Group::kOs, Group::kTask}) {
      for (const Series& s : sampler.schema(group)->series()) EXPECT_LE(s.metric.level, level);
    }
    EXPECT_EQ(sampler.row(Group::kTask).empty(), level < 2);
    EXPECT_GE(sampler.row(Group::kOs).size(), before);
    before = sampler.row(Group::kOs).size();
  }
}

TEST(SamplerLive, AWarmTickAllocatesNothing) {
  Sampler sampler({.level = 4, .events = "", .roots = {}});
  ASSERT_TRUE(sampler.tasks().AddTask(0, getpid()).ok());
  Nanos now = kSecond;
  for (int i = 0; i < 5; ++i) sampler.Sample(now += kSecond);
  const Schema::Ptr schema = sampler.schema(Group::kOs);
  const size_t before = allocations;
  for (int i = 0; i < 30; ++i) sampler.Sample(now += kSecond);
  const size_t after = allocations;
  if (sampler.schema(Group::kOs) != schema) GTEST_SKIP() << "a device came or went meanwhile";
  EXPECT_EQ(after, before);
}

// A step with a control group, and one whose group is looked for again and again.
TEST(SamplerLive, AWarmTickWithAControlGroupAllocatesNothing) {
  for (const std::string_view group : {"/job_7/step_0/user/task_0", "/system.slice/x.service"}) {
    const Tree tree;
    tree.Write("proc/self/mountinfo", "30 22 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    tree.Write("proc/100/stat",
               "100 (app) S 1 1 1 0 -1 0 1 0 0 0 1 1 0 0 20 0 1 0 100 1000 10 0 0 0 0 0 0 0 0 0 0 "
               "0 0 0 0 17 0 0 0 0 0 0\n");
    tree.Write("proc/100/cgroup", fmt::format("0::{}\n", group));
    const std::string directory = "sys/fs/cgroup/job_7/step_0/user/";
    tree.Write(directory + "memory.max", "5000\n");
    tree.Write(directory + "memory.stat", "anon 5\nfile 6\n");
    tree.Write(directory + "io.stat", "8:0 rbytes=1 wbytes=2 rios=3 wios=4\n");
    Sampler sampler({.level = 2, .events = "", .roots = tree.roots()});
    ASSERT_TRUE(sampler.tasks().AddTask(0, 100).ok());
    Nanos now = kSecond;
    for (int i = 0; i < 100; ++i) sampler.Sample(now += kSecond);
    const bool found = Find(sampler.schema(Group::kOs)->series(), "cgroup_memory_anon_bytes") <
                       sampler.schema(Group::kOs)->size();
    EXPECT_EQ(found, group.ends_with("task_0"));
    const size_t before = allocations;
    for (int i = 0; i < 100; ++i) sampler.Sample(now += kSecond);
    EXPECT_EQ(allocations, before) << group;
  }
}

TEST(Registry, EveryMetricIsDeclaredOnceByTheConventions) {
  std::vector<std::string_view> names;
  for (const MetricDecl& m : AllMetrics()) {
    EXPECT_TRUE(CheckMetricName(m.name).ok()) << m.name;
    EXPECT_EQ(m.type == MetricType::kCounter, m.name.ends_with("_total")) << m.name;
    EXPECT_FALSE(m.help.empty()) << m.name;
    if (m.unit != "1") {
      EXPECT_NE(m.name.find(m.unit), std::string_view::npos) << m.name;
    }
    names.push_back(m.name);
  }
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
}

TEST(Registry, EverySampledMetricIsDeclared) {
  Sampler sampler({.level = 4, .events = "", .roots = {}});
  ASSERT_TRUE(sampler.tasks().AddTask(0, getpid()).ok());
  sampler.Sample(kSecond);
  for (const Group group : {Group::kOs, Group::kTask}) {
    for (const Series& s : sampler.schema(group)->series()) {
      const bool declared = std::any_of(AllMetrics().begin(), AllMetrics().end(),
                                        [&](const MetricDecl& m) { return Metric(m) == s.metric; });
      EXPECT_TRUE(declared) << s.metric.name;
    }
  }
}

TEST(Registry, TheDocumentationIsCurrent) {
  std::ifstream file(std::string(kSourceDir) + "/docs/metrics.md");
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  EXPECT_TRUE(text == MetricsAsMarkdown()) << "run: list_metrics --markdown > docs/metrics.md";
}

}  // namespace
}  // namespace sonde::collect::collect_sampler_test
