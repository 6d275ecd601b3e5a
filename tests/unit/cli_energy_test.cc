// sonde energy, as its users run it: over steps whose nodes' power is known.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cmath>

#include "tests/unit/insight_step.h"
#include "tests/unit/sonde_command.h"

namespace sonde::insight::cli_energy_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class CliEnergy : public testing::Test {
 protected:
  // Two nodes of 8 CPUs for 120 s. Of a step that has `cpus` of each its tasks keep `own` busy, and
  // others `others`.
  static StepOf OnNodes(double cpus, double own, double others) {
    StepOf step(2);
    step.job.level = 3;
    step.job.expected_tasks = 4;
    step.Gauge("os", "cgroup_cpuset_cpus", {}, [=](uint32_t, int) { return cpus; });
    step.Counter("os", "node_cpu_seconds_total", {{"mode", "user"}},
                 [=](uint32_t, int) { return own + others; });
    step.Counter("os", "node_cpu_seconds_total", {{"mode", "idle"}},
                 [=](uint32_t, int) { return 8 - own - others; });
    step.Counter("task", "task_cpu_seconds_total", {{"mode", "user"}, {"task", "0"}},
                 [=](uint32_t, int) { return own; });
    return step;
  }
  static void Meter(StepOf& step, const char* domain, const char* source, double watts) {
    step.Counter("os", "node_energy_joules_total", {{"domain", domain}, {"source", source}},
                 [=](uint32_t, int) { return watts; });
  }
  std::string root() const { return dir_.path() + "/archive"; }
  Outcome Sonde(const std::string& arguments, const std::string& environment = "") {
    return RunSonde(dir_.path(), "energy " + arguments + " 123", "COLUMNS=120 " + environment);
  }
  boost::json::value Json(const std::string& environment = "") {
    const Outcome outcome = Sonde("--json", environment);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return boost::json::parse(outcome.out);
  }
  static double Of(const boost::json::value& json, std::string_view key) {
    return json.at(key).is_null() ? std::nan("") : json.at(key).to_number<double>();
  }

  TempDir dir_{TempDir::Memory()};
};

TEST_F(CliEnergy, OfWholeNodesPackagesAndMemoryAreAddedAndPartsAreNot) {
  StepOf step = OnNodes(8, 7, 0.5);
  Meter(step, "package-0", "rapl", 100);
  Meter(step, "package-1", "rapl", 50);
  Meter(step, "dram-0", "rapl", 10);
  Meter(step, "core-0", "rapl", 70);
  Meter(step, "psys", "rapl", 500);
  Meter(step, "nvme0/power1", "hwmon", 500);
  step.Write(root());
  const auto json = Json();
  EXPECT_NEAR(Of(json, "joules"), 2 * 160 * 120, 1);
  EXPECT_NEAR(Of(json, "mean_watts"), 320, 0.1);
  EXPECT_NEAR(Of(json, "joules_per_task"), 2 * 160 * 120 / 4.0, 1);
  EXPECT_TRUE(json.at("nodes").at(0).at("whole_node").as_bool());
  EXPECT_THAT(Sonde("").out, AllOf(HasSubstr("not in it: fans, disks"), HasSubstr("processors"),
                                   Not(HasSubstr("not in it: memory")), Not(HasSubstr("between"))));
}

TEST_F(CliEnergy, AMeterOfTheWholeNodeCountsAloneAndHasTheGpusInIt) {
  StepOf step = OnNodes(8, 8, 0);
  Meter(step, "node", "cray", 900);
  Meter(step, "cpu", "cray", 200);
  Meter(step, "memory", "cray", 50);
  Meter(step, "accel0", "cray", 300);
  step.Counter("os", "gpu_energy_joules_total", {{"gpu", "0"}}, [](uint32_t, int) { return 300; });
  step.Write(root());
  const auto json = Json();
  EXPECT_NEAR(Of(json, "joules"), 2 * 900 * 120, 1);
  EXPECT_NEAR(Of(json, "gpu_joules"), 2 * 300 * 120, 1);
  EXPECT_NEAR(Of(json, "processor_joules"), 2 * 600 * 120, 1);
  EXPECT_EQ(json.at("nodes").at(1).at("meter").as_string(), "node");
  EXPECT_THAT(Sonde("").out, Not(HasSubstr("not in it: fans")));
}

TEST_F(CliEnergy, AnAcpiMetersWattsAreSummedUp) {
  StepOf step = OnNodes(8, 8, 0);
  step.Gauge("os", "node_power_watts", {{"domain", "power_meter0/power1"}, {"source", "hwmon"}},
             [](uint32_t node, int) { return node == 0 ? 400 : 200; });
  Meter(step, "package-0", "perf", 100);
  step.Write(root());
  EXPECT_NEAR(Of(Json(), "joules"), 600 * 120, 1);
}

TEST_F(CliEnergy, GpusAreAddedToProcessors) {
  StepOf step = OnNodes(8, 8, 0);
  Meter(step, "package-0", "rapl", 100);
  step.Counter("os", "gpu_energy_joules_total", {{"gpu", "0"}}, [](uint32_t, int) { return 300; });
  step.Counter("os", "gpu_energy_joules_total", {{"gpu", "1"}}, [](uint32_t, int) { return 200; });
  step.Write(root());
  EXPECT_NEAR(Of(Json(), "joules"), 2 * 600 * 120, 1);
  EXPECT_THAT(Sonde("").out, HasSubstr("not in it: memory"));
}

TEST_F(CliEnergy, OfASharedNodeTheStepHasItsShare) {
  StepOf step = OnNodes(2, 1.5, 4.5);
  Meter(step, "package-0", "rapl", 100);
  step.Write(root());
  const auto json = Json();
  const auto& node = json.at("nodes").at(0);
  EXPECT_FALSE(node.at("whole_node").as_bool());
  // Nothing shows what the node draws at rest: a quarter of the CPU time, and of the CPUs.
  EXPECT_NEAR(Of(json, "joules"), 2 * 100 * 120 / 4.0, 1);
  EXPECT_NEAR(Of(node, "allocated_cpus"), 2, 1e-9);
  EXPECT_NEAR(Of(node, "cpus"), 8, 1e-9);
  EXPECT_TRUE(std::isnan(Of(node, "idle_watts")));
}

TEST_F(CliEnergy, WhereTheLoadChangesThePowerAtRestIsShared) {
  // Others come and go: 40 W at rest, 10 W for each busy CPU.
  StepOf step(1);
  step.job.level = 3;
  const auto others = [](int tick) { return tick % 20 < 10 ? 1.0 : 5.0; };
  step.Gauge("os", "cgroup_cpuset_cpus", {}, [](uint32_t, int) { return 4; });
  step.Counter("os", "node_cpu_seconds_total", {{"mode", "user"}},
               [=](uint32_t, int tick) { return 1 + others(tick); });
  step.Counter("os", "node_cpu_seconds_total", {{"mode", "idle"}},
               [=](uint32_t, int tick) { return 7 - others(tick); });
  step.Counter("task", "task_cpu_seconds_total", {{"mode", "user"}, {"task", "0"}},
               [](uint32_t, int) { return 1; });
  step.Counter("os", "node_energy_joules_total", {{"domain", "package-0"}, {"source", "rapl"}},
               [=](uint32_t, int tick) { return 40 + 10 * (1 + others(tick)); });
  step.Write(root());
  const auto json = Json();
  const auto& node = json.at("nodes").at(0);
  EXPECT_NEAR(Of(node, "idle_watts"), 40, 0.5);
  EXPECT_NEAR(Of(node, "idle_joules"), 40 * 120 * 4 / 8.0, 30);
  EXPECT_NEAR(Of(json, "joules"), 40 * 120 * 4 / 8.0 + 10 * 120, 30);
  EXPECT_NEAR(Of(json, "low_joules"), 80 * 120 / 4.0, 30);
  EXPECT_NEAR(Of(json, "high_joules"), 60 * 120 / 2.0 + 20 * 120 / 4.0, 30);
  EXPECT_THAT(Sonde("").out, HasSubstr("between"));
}

TEST_F(CliEnergy, FiguresOfMeritHaveTheirEnergyByUnit) {
  StepOf step = OnNodes(8, 8, 0);
  Meter(step, "package-0", "rapl", 150);
  step.job.figures = {{"speed", "cells/s", 600, 1, step.job.start, 0, 0, {}},
                      {"steps", "1", 1000, 1, step.job.start, 0, 0, {}},
                      {"nothing", "1", 0, 1, step.job.start, 0, 0, {}}};
  step.Write(root());
  const auto figures = Json().at("figures").as_array();
  ASSERT_EQ(figures.size(), 2u);
  EXPECT_NEAR(Of(figures[0], "joules_per_unit"), 300.0 / 600, 1e-6) << "of a speed, power by it";
  EXPECT_EQ(figures[0].at("unit").as_string(), "cells");
  EXPECT_NEAR(Of(figures[1], "joules_per_unit"), 300.0 * 120 / 1000, 1e-4);
  EXPECT_NEAR(Of(figures[1], "units_per_kwh"), 3.6e6 / 36, 1);
}

TEST_F(CliEnergy, CarbonNeedsWhatTheSiteSaysOfItsElectricity) {
  StepOf step = OnNodes(8, 8, 0);
  Meter(step, "package-0", "rapl", 150);
  step.Write(root());
  EXPECT_TRUE(Json().at("carbon_grams").is_null());
  EXPECT_THAT(Sonde("").out, HasSubstr("carbon_g_per_kwh and pue"));
  EXPECT_TRUE(Json("SONDE_CARBON_G_PER_KWH=380").at("carbon_grams").is_null()) << "both are needed";
  const std::string both = "SONDE_CARBON_G_PER_KWH=360 SONDE_PUE=1.5";
  EXPECT_NEAR(Of(Json(both), "carbon_grams"), 300.0 * 120 / 3.6e6 * 1.5 * 360, 1e-3);
  EXPECT_THAT(Sonde("", both).out, HasSubstr("5.4 g CO2e"));
  EXPECT_EQ(Sonde("", "SONDE_PUE=0.9").code, 1);
}

TEST_F(CliEnergy, WhatWasNotMeasuredIsNotClaimed) {
  OnNodes(8, 8, 0).Write(root());
  const Outcome text = Sonde("");
  EXPECT_EQ(text.code, 0);
  EXPECT_THAT(text.out, HasSubstr("No meter of its nodes could be read"));
  EXPECT_TRUE(Json().at("joules").is_null());
}

}  // namespace
}  // namespace sonde::insight::cli_energy_test
