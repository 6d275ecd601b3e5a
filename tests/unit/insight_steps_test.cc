// Stragglers, phases and periods of steps in an archive, and the commands that show them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>

#include "insight/steps/step_phases.h"
#include "insight/steps/step_stragglers.h"
#include "profiles/archive/open_archive.h"
#include "tests/unit/insight_noise.h"
#include "tests/unit/insight_step.h"
#include "tests/unit/profiles_fixture.h"
#include "tests/unit/sonde_command.h"

namespace sonde::insight {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class InsightSteps : public testing::Test {
 protected:
  Outcome Sonde(const std::string& arguments) { return RunSonde(dir_.path(), arguments); }
  double Noisy(double level, double deviation) { return level + deviation * noise_.Normal(); }
  std::string root() const { return dir_.path() + "/archive"; }

  TempDir dir_{TempDir::Memory()};
  SeededNoise noise_{1};
};

TEST_F(InsightSteps, AStragglerIsNamedWithSinceWhenAndWhatGoesWithIt) {
  StepOf step(8);
  const auto slow = [](uint32_t rank, int tick) { return rank == 5 && tick > 60; };
  step.Counter("task", "task_cpu_seconds_total", kUserTask,
               [&](uint32_t rank, int tick) { return Noisy(slow(rank, tick) ? 0.4 : 0.9, 0.02); });
  step.Counter("cgroup", "cgroup_cpu_throttled_seconds_total", {},
               [&](uint32_t rank, int tick) { return slow(rank, tick) ? Noisy(0.5, 0.02) : 0; });
  step.Counter("os", "node_network_receive_errs_total", {{"device", "eth0"}},
               [&](uint32_t, int) { return static_cast<double>(noise_.Below(2)); });
  step.Write(root());
  const Outcome text = Sonde("stragglers 123");
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out,
              AllOf(HasSubstr("rank 5 on n5: CPU time 0.4"), HasSubstr("1 min 0 s after the start"),
                    HasSubstr("throttled by the CPU limit"), Not(HasSubstr("receive errors")),
                    Not(HasSubstr("rank 4 on n4: ")), HasSubstr("imbalance")));
  const auto json = boost::json::parse(Sonde("stragglers --json 123.0").out);
  const auto& cpu = json.at("metrics").as_array().at(0);
  EXPECT_EQ(cpu.at("metric").as_string(), "task_cpu_seconds_total");
  EXPECT_EQ(cpu.at("rows").to_number<int>(), 8);
  const auto& named = cpu.at("stragglers").as_array();
  ASSERT_EQ(named.size(), 1u);
  EXPECT_EQ(named[0].at("rank").to_number<int>(), 5);
  EXPECT_EQ(named[0].at("node").as_string(), "n5");
  EXPECT_EQ(named[0].at("since").to_number<Nanos>(), kTestStart + 60 * kSecond);
  EXPECT_NEAR(named[0].at("value").to_number<double>(), 0.4, 0.02);
  EXPECT_EQ(named[0].at("causes").as_array().at(0).at("metric").as_string(),
            "cgroup_cpu_throttled_seconds_total");
}

TEST_F(InsightSteps, OthersOnASharedNodeAreACause) {
  StepOf step(8);
  const auto slow = [](uint32_t rank, int tick) { return rank == 2 && tick > 40; };
  step.Counter("task", "task_cpu_seconds_total", kUserTask,
               [&](uint32_t rank, int tick) { return Noisy(slow(rank, tick) ? 0.5 : 1, 0.02); });
  step.Counter("os", "node_cpu_seconds_total", {{"mode", "user"}},
               [&](uint32_t rank, int tick) { return Noisy(slow(rank, tick) ? 3.5 : 1.2, 0.02); });
  step.Counter("os", "node_cpu_seconds_total", {{"mode", "idle"}},
               [&](uint32_t rank, int tick) { return slow(rank, tick) ? 0.5 : 2.8; });
  step.Write(root());
  EXPECT_THAT(Sonde("stragglers 123").out,
              AllOf(HasSubstr("rank 2 on n2"), HasSubstr("CPU time of others on the node: 3.0")));
}

TEST_F(InsightSteps, PhasesOfTheApplicationAreToldApart) {
  StepOf step(8);
  for (int i = 0; i < 4; ++i) {
    for (const char* name : {"solve", "write"}) {
      Phase& phase = step.moments.phases.emplace_back();
      phase.name = name;
      phase.begin = step.job.start + (30 * i + (*name == 'w' ? 15 : 0)) * kSecond;
      phase.end = phase.begin + 15 * kSecond;
    }
  }
  step.Counter("task", "task_cpu_seconds_total", kUserTask, [&](uint32_t rank, int tick) {
    return Noisy(rank == 1 && (tick - 1) % 30 >= 15 ? 0.2 : 0.9, 0.02);
  });
  step.Write(root());
  EXPECT_THAT(Sonde("stragglers 123").out,
              AllOf(HasSubstr("rank 1 on n1"), HasSubstr("in phase write: 0.2"),
                    Not(HasSubstr("in phase solve"))));
  EXPECT_THAT(Sonde("phases 123").out, AllOf(HasSubstr("told"), HasSubstr("solve")));
}

TEST_F(InsightSteps, WhereNobodyStandsOutItSaysSo) {
  StepOf step(16);
  step.Counter("task", "task_cpu_seconds_total", kUserTask,
               [&](uint32_t rank, int) { return Noisy(0.9 + 0.001 * rank, 0.05); });
  step.Write(root());
  const Outcome text = Sonde("stragglers 123");
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, AllOf(HasSubstr("No node or rank stands out."), HasSubstr("imbalance")));
}

TEST_F(InsightSteps, OfTwoNoneIsNamed) {
  StepOf step(2);
  step.Counter("task", "task_cpu_seconds_total", kUserTask,
               [&](uint32_t rank, int) { return Noisy(rank == 0 ? 0.9 : 0.4, 0.02); });
  step.Write(root());
  EXPECT_THAT(Sonde("stragglers 123").out,
              HasSubstr("rank 0 on n0 and rank 1 on n1 differ in CPU time; of two nobody can say"));
}

TEST_F(InsightSteps, PhasesWithoutAnnotationsShowInTheSeries) {
  StepOf step(4);
  step.Counter("task", "task_cpu_seconds_total", kUserTask,
               [&](uint32_t, int tick) { return Noisy(tick > 50 ? 0.2 : 0.9, 0.03); });
  step.Gauge("task", "task_resident_memory_bytes", kTask,
             [&](uint32_t, int) { return 1e9 + 1e6 * noise_.Normal(); });
  step.Counter("task", "task_write_call_bytes_total", kTask, [&](uint32_t, int tick) {
    return tick > 50 ? 1e6 + 1e4 * static_cast<double>(noise_.Below(10)) : 0;
  });
  step.Write(root());
  const Outcome text = Sonde("phases 123");
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, AllOf(HasSubstr("Phases that show"), HasSubstr("90 %"), HasSubstr("20 %"),
                              HasSubstr("written"), HasSubstr("MiB/s")));
  const auto json = boost::json::parse(Sonde("phases --json 123").out);
  const auto& found = json.at("found").as_array();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[1].at("begin").to_number<Nanos>(), kTestStart + 50 * kSecond);
  EXPECT_EQ(json.at("columns").as_array().at(0).at("name").as_string(), "CPU");
  EXPECT_NEAR(found[0].at("means").as_array().at(0).to_number<double>(), 3.6, 0.1);
  EXPECT_TRUE(json.at("told").as_array().empty());
}

TEST_F(InsightSteps, AStepOfOneKindIsOnePhase) {
  StepOf step(4);
  step.Counter("task", "task_cpu_seconds_total", kUserTask,
               [&](uint32_t, int) { return Noisy(0.9, 0.03); });
  step.Write(root());
  EXPECT_THAT(Sonde("phases 123").out, HasSubstr("shows as one phase"));
}

TEST_F(InsightSteps, WhatRepeatsItselfIsNamedWithItsPeriod) {
  StepOf step(4);
  step.Counter("task", "task_cpu_seconds_total", kUserTask,
               [&](uint32_t, int) { return std::abs(Noisy(0.9, 0.05)); });
  step.Counter("task", "task_write_call_bytes_total", kTask, [&](uint32_t, int tick) {
    return (tick % 12 < 3 ? 1e8 : 0) + 1e5 * static_cast<double>(noise_.Below(9));
  });
  step.Counter("app", "checkpoints_total", {},
               [&](uint32_t, int tick) { return tick % 12 == 0 ? 1 : 0; });
  step.Write(root());
  const Outcome text = Sonde("period 123");
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, AllOf(HasSubstr("written"), HasSubstr("checkpoints_total"),
                              HasSubstr("12 s"), HasSubstr("why no period is named")));
  const auto json = boost::json::parse(Sonde("period --json 123").out);
  size_t found = 0;
  for (const auto& one : json.at("metrics").as_array()) {
    const std::string metric(one.at("metric").as_string());
    const auto* period = one.as_object().if_contains("period_seconds");
    EXPECT_EQ(period != nullptr, metric != "task_cpu_seconds_total") << metric;
    if (period == nullptr) continue;
    ++found;
    const auto& waves = one.at("waves").as_array();
    EXPECT_TRUE(std::any_of(waves.begin(), waves.end(), [](const boost::json::value& wave) {
      return std::abs(wave.at("frequency_hertz").to_number<double>() - 1.0 / 12) < 0.005 &&
             wave.at("amplitude").to_number<double>() > 0;
    })) << metric;
    EXPECT_NEAR(period->to_number<double>(), 12, 0.12) << metric;
    EXPECT_NEAR(one.at("frequency_hertz").to_number<double>(), 1.0 / 12, 0.001);
  }
  EXPECT_EQ(found, 2u);
  const auto named =
      boost::json::parse(Sonde("period --json 123 --metric task_write_call_bytes_total").out);
  EXPECT_EQ(named.at("metrics").as_array().size(), 1u);
  EXPECT_THAT(Sonde("period 123 --metric nothing").err, HasSubstr("has no metric 'nothing'"));
}

TEST_F(InsightSteps, WhatIsNotThereOrStillRunsIsSaid) {
  for (const char* command : {"stragglers", "phases", "period"}) {
    EXPECT_EQ(Sonde(std::string(command) + " 77").code, 3) << command;
    EXPECT_EQ(Sonde(command).code, 2) << command;
  }
  auto live = LiveArchive::Create(root(), TestJob("9"));
  ASSERT_TRUE(live.ok());
  EXPECT_THAT(Sonde("stragglers 9").err, HasSubstr("is running"));
  // Without any series.
  StepOf step(2);
  step.Write(root());
  EXPECT_THAT(Sonde("stragglers 123").out, HasSubstr("nothing to compare"));
  EXPECT_THAT(Sonde("phases 123").out, HasSubstr("no series"));
  EXPECT_THAT(Sonde("period 123").out, HasSubstr("no series"));
}

TEST(TickGrids, OfMoreRowsThereAreFewerTicks) {
  JobDescription job = TestJob();
  job.end = job.start + 86'400 * kSecond;
  EXPECT_EQ(GridOfRows(job, 100, 86'400).count, 86'400u);
  EXPECT_EQ(GridOfRows(job, 0, 86'400).count, 86'400u);
  EXPECT_LE(GridOfRows(job, 10'000, 86'400).count * 10'000, kMostInRows);
  EXPECT_GT(GridOfRows(job, 10'000, 86'400).count * 10'000, kMostInRows / 2);
  EXPECT_EQ(GridOfRows(job, 10'000'000, 86'400).count, kFewestRowTicks);
}

TEST(TickGrids, CountersAreRatesOverTheTicksTheyCover) {
  JobDescription job = TestJob();
  job.end = job.start + 10 * kSecond;
  const TickGrid grid = GridOf(job, 100);
  EXPECT_EQ(grid.count, 10u);
  EXPECT_EQ(GridOf(job, 4).count, 4u);
  EXPECT_EQ(GridOf(job, 4).width, 3 * kSecond);
  TickFiller filler(grid, true);
  filler.Add(job.start + 1 * kSecond, 5);
  filler.Add(job.start + 4 * kSecond, 11);  // 2 a second
  filler.Add(job.start + 5 * kSecond, 3);   // begun anew
  filler.Add(job.start + 6 * kSecond, 10);
  const std::vector<double> rates = filler.Take();
  EXPECT_TRUE(std::isnan(rates[0]));
  for (const size_t t : {1, 2, 3}) EXPECT_DOUBLE_EQ(rates[t], 2) << t;
  EXPECT_TRUE(std::isnan(rates[4]));
  EXPECT_DOUBLE_EQ(rates[5], 7);
  EXPECT_TRUE(std::isnan(rates[9]));
}

}  // namespace
}  // namespace sonde::insight
