// How much of a step is behind a difference, and the order that follows from it.
#include <gtest/gtest.h>

#include <cmath>

#include "profiles/compare/weight.h"
#include "profiles_fixture.h"

namespace sonde::profiles_weight_test {
namespace {

constexpr double kMiB = 1024 * 1024;
constexpr double kGiB = 1024 * kMiB;

// 100 s on 2 nodes of 8 processors and 64 GiB, 4 tasks.
StepSize Size() {
  StepSize size;
  size.seconds = 100;
  size.nodes = 2;
  size.tasks = 4;
  size.processors = 16;
  size.cpu_seconds = 300;
  size.node_memory = 64 * kGiB;
  size.moved_bytes = kGiB;
  return size;
}

double Weight(const Weighed& what, double base, double other) {
  return WeightOf(what, base, other, Size(), Size());
}

TEST(WeightTest, IsTheShareOfWhatTheNumberIsAPartOf) {
  using enum CompareSection;
  EXPECT_DOUBLE_EQ(Weight({kTime, "", "seconds", true}, 100, 80), 0.2);
  EXPECT_DOUBLE_EQ(Weight({kPhases, "", "seconds"}, 30, 40), 0.1);
  // Of the time of all tasks; of threads that used more, of that.
  EXPECT_DOUBLE_EQ(Weight({kOther, "mpi_seconds_total", "seconds", true}, 40, 80), 0.1);
  StepSize threaded = Size();
  threaded.cpu_seconds = 4000;
  EXPECT_DOUBLE_EQ(
      WeightOf({kCpu, "task_cpu_seconds_total", "seconds", true}, 3000, 4000, Size(), threaded),
      0.25);
  EXPECT_DOUBLE_EQ(Weight({kOther, "node_cpu_seconds_total", "seconds", true}, 0, 160), 0.1);
  EXPECT_DOUBLE_EQ(Weight({kOther, "node_disk_io_time_seconds_total", "seconds", true}, 0, 20),
                   0.1);
  EXPECT_DOUBLE_EQ(
      Weight({kOther, "node_pressure_io_waiting_seconds_total", "seconds", true, Reduction::kMean},
             0, 10),
      0.1);
  EXPECT_DOUBLE_EQ(Weight({kOther, "gpu_utilization_ratio", "ratio"}, 0.5, 0.9), 0.4);
  EXPECT_DOUBLE_EQ(Weight({kMemory, "", "bytes", false, Reduction::kMax}, 0, 16 * kGiB), 0.25);
  EXPECT_DOUBLE_EQ(Weight({kOther, "task_resident_memory_bytes", "bytes"}, 0, 32 * kGiB), 0.25);
  EXPECT_DOUBLE_EQ(Weight({kFigures, "speed", "Mcells/s"}, 80, 100), 0.2);
}

TEST(WeightTest, OfBytesOrdinaryTrafficIsTheLeastWhole) {
  const Weighed read = {CompareSection::kIo, "task_read_bytes_total", "bytes", true};
  // 100 s x 2 nodes x 100 MiB/s, which is more than the 1 GiB that was moved.
  EXPECT_DOUBLE_EQ(Weight(read, 0, 2000 * kMiB), 0.1);
  StepSize busy = Size();
  busy.moved_bytes = 200 * kGiB;
  EXPECT_DOUBLE_EQ(WeightOf(read, 0, 20 * kGiB, busy, Size()), 0.1);
  // A tenfold number of next to nothing weighs next to nothing.
  EXPECT_LT(Weight(read, kMiB, 10 * kMiB), kLeastWeight);
}

TEST(WeightTest, IsAtMostOneAndNotKnownWhereNothingTells) {
  using enum CompareSection;
  EXPECT_DOUBLE_EQ(Weight({kTime, "", "seconds", true}, 0, 500), 1);
  EXPECT_TRUE(std::isnan(Weight({kOther, "node_context_switches_total", "1", true}, 1, 2)));
  EXPECT_TRUE(std::isnan(Weight({kOther, "node_vmstat_pgpgout_bytes_total", "bytes", true}, 1, 2)));
  EXPECT_TRUE(std::isnan(Weight({kOther, "node_filesystem_free_bytes", "bytes"}, 1, 2)));
  EXPECT_TRUE(std::isnan(Weight({kGpu, "gpu_memory_used_bytes", "bytes"}, 1, 2)));
  EXPECT_TRUE(std::isnan(WeightOf({kTime, "", "seconds", true}, 1, 2, {}, {})));
  // What only one of them has counts as a whole.
  EXPECT_DOUBLE_EQ(Weight({kTime, "", "seconds", true}, std::nan(""), 40), 0.4);
}

TEST(WeightTest, FilesystemsWithoutFilesAreKnown) {
  const auto is = [](const char* type, const char* place) {
    return IsOfPseudoFilesystem({{"fstype", type}, {"mountpoint", place}});
  };
  for (const auto& [type, place] : {std::pair{"proc", "/proc"},
                                    {"sysfs", "/sys"},
                                    {"cgroup2", "/sys/fs/cgroup"},
                                    {"devtmpfs", "/dev"},
                                    {"tmpfs", "/dev"},
                                    {"proc", "/mnt/root/proc"}}) {
    EXPECT_TRUE(is(type, place)) << type << place;
  }
  for (const auto& [type, place] : {std::pair{"ext4", "/"},
                                    {"tmpfs", "/dev/shm"},
                                    {"tmpfs", "/tmp"},
                                    {"lustre", "/system"},
                                    {"nfs4", "/process"},
                                    {"xfs", "/development"}}) {
    EXPECT_FALSE(is(type, place)) << type << place;
  }
  EXPECT_FALSE(IsOfPseudoFilesystem({}));
}

ComparedRun HeavyRun(double seconds, double cpu, double contexts, double proc_calls, double small) {
  ComparedRun run;
  run.profile.job = TestJob();
  run.profile.job.end = kTestStart + static_cast<Nanos>(seconds * kSecond);
  const auto add = [&](const char* name, double value, Tags tags = {}) {
    FootprintEntry entry;
    entry.series = TestSeries(name, MetricType::kCounter, std::move(tags));
    if (std::string(name).find("seconds") == std::string::npos) entry.series.metric.unit = "1";
    entry.ticks = 10;
    entry.last = value;
    run.profile.footprint.push_back(entry);
  };
  add("task_cpu_seconds_total", cpu, {{"mode", "user"}});
  add("node_context_switches_total", contexts);
  add("io_calls_total", proc_calls, {{"fstype", "proc"}, {"mountpoint", "/proc"}});
  add("io_seconds_total", small, {{"fstype", "ext4"}, {"mountpoint", "/"}});
  run.summary = Summarize(run.profile, {}, 0);
  return run;
}

TEST(WeightTest, WhatMattersMostComesFirstAndProcLast) {
  Comparison comparison =
      Compare({{HeavyRun(100, 200, 5000, 10, 0.001)}, {HeavyRun(150, 260, 9000, 90, 0.002)}}, {});
  PutWeightiestFirst(comparison);
  std::vector<std::pair<std::string, Standing>> order;
  for (const CompareRow& row : comparison.rows) order.emplace_back(row.name, row.standing);
  const auto at = [&](const std::string& name) {
    return std::find_if(order.begin(), order.end(),
                        [&](const auto& one) { return one.first.starts_with(name); }) -
           order.begin();
  };
  EXPECT_EQ(order.front(), std::pair(std::string("duration"), Standing::kWeighty));  // 50 of 150 s
  EXPECT_EQ(at("CPU time"), 1);  // 60 s of 4 x 150 s
  EXPECT_DOUBLE_EQ(comparison.rows[1].weight, 0.1);
  EXPECT_LT(at("CPU time"), at("node_context"));
  EXPECT_LT(at("node_context"), at("io_seconds_total"));
  EXPECT_LT(at("io_seconds_total"), at("io_calls_total"));
  EXPECT_EQ(order[static_cast<size_t>(at("node_context"))].second, Standing::kUnweighed);
  EXPECT_EQ(order[static_cast<size_t>(at("io_seconds_total"))].second, Standing::kSlight);
  EXPECT_EQ(order.back().first.substr(0, 14), "io_calls_total");
  EXPECT_EQ(order.back().second, Standing::kPseudo);
  EXPECT_TRUE(comparison.rows.back().beyond());
}

}  // namespace
}  // namespace sonde::profiles_weight_test
