// The sampler: rows and schemas of a level, counters from the step's start, no allocation.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "daemon/collect/registry.h"
#include "daemon/collect/sampler.h"
#include "tests/unit/collect_tree.h"

// Counted in collect_allocations.cc.
extern std::atomic<size_t> allocations;

namespace sonde::collect {
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
  EXPECT_EQ(sampler_.schema(Group::kOs)->size(), both->size() - 12);
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

TEST_F(SamplerTest, SondesOwnCostIsCounted) {
  Sample();
  Sample();
  sampler_.CountLateTick();
  Sample();
  EXPECT_EQ(Os("sonde_samples_total"), 2);
  EXPECT_EQ(Os("sonde_late_ticks_total"), 1);
  EXPECT_GT(Os("sonde_sample_seconds_total"), 0);
  EXPECT_GT(Os("sonde_cpu_seconds_total"), 0);
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
  std::ifstream file(SONDE_SOURCE_DIR "/docs/metrics.md");
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  EXPECT_TRUE(text == MetricsAsMarkdown()) << "run: list_metrics --markdown > docs/metrics.md";
}

}  // namespace
}  // namespace sonde::collect
