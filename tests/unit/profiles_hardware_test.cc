// Counters, GPUs and energy of a step in the report.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "profiles/model/hardware.h"
#include "profiles/model/text.h"
#include "profiles/report/report.h"
#include "tests/unit/profiles_fixture.h"

namespace sonde::profiles_hardware_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;

class HardwareTest : public testing::Test {
 protected:
  HardwareTest() { profile_.job = TestJob(); }

  FootprintEntry& Add(const char* metric, double last, double mean, Tags tags = {}) {
    FootprintEntry& e = profile_.footprint.emplace_back();
    e.series.metric.name = metric;
    e.series.tags = std::move(tags);
    e.last = last;
    e.mean = mean;
    e.min = e.max = last;
    return e;
  }
  void Counters() {
    Add("task_perf_cycles_total", 4e9, 0);
    Add("task_perf_instructions_total", 6e9, 0);
    Add("task_perf_task_clock_seconds_total", 2, 0);
    FootprintEntry& ipc = Add("task_instructions_per_cycle", 1.5, 1.4);
    ipc.min = 0.9;
    ipc.min_owner = {1, 3};
    ipc.max = 2.1;
    ipc.max_owner = {0, 0};
  }

  Profile profile_;
};

TEST_F(HardwareTest, WithoutAnyThereIsNothingToSay) {
  EXPECT_THAT(HardwareLines(SummarizeHardware(profile_)), IsEmpty());
}

TEST_F(HardwareTest, RatiosOfTheStepAreThoseOfItsTotals) {
  Counters();
  EXPECT_THAT(HardwareLines(SummarizeHardware(profile_)),
              ElementsAre(Pair("Counters", "1.5 instructions per cycle, 2 GHz"),
                          Pair("",
                               "instructions per cycle at least 0.9 on task 3 on n2, at most "
                               "2.1 on task 0 on n1")));
}

TEST_F(HardwareTest, WorkAndTrafficAreMeansOverTheStep) {
  Add("task_flops_per_second", 0, 24e9);
  Add("task_memory_bytes_per_second", 0, 3 * 1073741824.0);
  Add("task_vector_flops_ratio", 0, 0.8);
  const HardwareSummary s = SummarizeHardware(profile_);
  EXPECT_DOUBLE_EQ(s.arithmetic_intensity, 24e9 / (3 * 1073741824.0));
  EXPECT_THAT(HardwareLines(s),
              ElementsAre(Pair("Counters",
                               "24 GFLOP/s (80 % vector), 3.0 GiB/s from memory, 7.451 "
                               "FLOP per byte")));
}

TEST_F(HardwareTest, GpusAreAveragedAndTheirPowerAddedUp) {
  Add("gpu_utilization_ratio", 0, 0.9, {{"gpu", "0"}});
  Add("gpu_utilization_ratio", 0, 0.5, {{"gpu", "1"}});
  Add("gpu_power_watts", 0, 300, {{"gpu", "0"}});
  Add("gpu_power_watts", 0, 200, {{"gpu", "1"}});
  FootprintEntry& memory = Add("gpu_memory_used_bytes", 0, 0, {{"gpu", "1"}});
  memory.max = 40 * 1073741824.0;
  memory.max_owner = {1, Owner::kNobody};
  Add("gpu_energy_joules_total", 5000, 0, {{"gpu", "0"}});
  Add("node_step_energy_joules_total", 1500, 0);
  EXPECT_THAT(
      HardwareLines(SummarizeHardware(profile_)),
      ElementsAre(Pair("GPUs", "70 % busy, at most 40.0 GiB of memory on GPU 1 of n2, 500 W"),
                  Pair("Energy",
                       "1.5 kJ of processors and memory (the step's share), 5 kJ "
                       "of GPUs")));
}

TEST_F(HardwareTest, TheReportHasIt) {
  EXPECT_THAT(RenderReport(profile_, {}), Not(HasSubstr("Counters")));
  Counters();
  EXPECT_THAT(RenderReport(profile_, {}),
              HasSubstr("\nCounters 1.5 instructions per cycle, 2 GHz\n"));
}

TEST(Text, UnitsOfTheSiHavePrefixes) {
  EXPECT_EQ(text::Value(2.5e9, "hertz"), "2.5 GHz");
  EXPECT_EQ(text::Value(999, "watts"), "999 W");
  EXPECT_EQ(text::Value(2000, "joules", true), "2 kW");
  EXPECT_EQ(text::Value(3e13, "flops_per_second"), "30 TFLOP/s");
  EXPECT_EQ(text::Value(2048, "bytes_per_second"), "2.0 KiB/s");
  EXPECT_EQ(text::Value(0.25, "ratio"), "25 %");
}

}  // namespace
}  // namespace sonde::profiles_hardware_test
