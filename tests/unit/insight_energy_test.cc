// A step's share of a node's energy.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "insight/hardware/energy.h"
#include "tests/unit/insight_noise.h"

namespace sonde::insight {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

// 100 s on a node of 64 CPUs that drew 300 W, 100 W of them at rest.
NodeUse SomeUse(double allocated, double step_cpu, double busy_cpu) {
  NodeUse use;
  use.joules = 30'000;
  use.seconds = 100;
  use.step_cpu = step_cpu;
  use.busy_cpu = busy_cpu;
  use.allocated = allocated;
  use.cpus = 64;
  use.idle = {100, 150};
  return use;
}

TEST(Energy, AWholeNodesEnergyIsTheStepsWhateverElseRan) {
  const EnergyShare share = ShareOf(SomeUse(64, 3000, 3100));
  EXPECT_TRUE(share.whole_node);
  EXPECT_DOUBLE_EQ(share.joules, 30'000);
  EXPECT_DOUBLE_EQ(share.idle, 10'000);
  EXPECT_DOUBLE_EQ(share.low, share.high);
}

TEST(Energy, OnASharedNodeRestGoesByCpusAndTheOtherPartByCpuTime) {
  // A quarter of the CPUs, and half of the CPU time.
  const EnergyShare share = ShareOf(SomeUse(16, 1600, 3200));
  EXPECT_FALSE(share.whole_node);
  EXPECT_DOUBLE_EQ(share.idle, 10'000 * 0.25);
  EXPECT_DOUBLE_EQ(share.joules, 10'000 * 0.25 + 20'000 * 0.5);
  EXPECT_DOUBLE_EQ(share.high, 30'000 * 0.5) << "as if nothing were drawn at rest";
  EXPECT_DOUBLE_EQ(share.low, 15'000 * 0.25 + 15'000 * 0.5);
}

TEST(Energy, WithoutThePowerAtRestAllGoesByCpuTime) {
  NodeUse use = SomeUse(16, 1600, 3200);
  use.idle.watts = kUnknown;
  EXPECT_DOUBLE_EQ(ShareOf(use).joules, 15'000);
  EXPECT_TRUE(std::isnan(ShareOf(use).idle));
  EXPECT_LT(ShareOf(use).low, 15'000);
  use.allocated = kUnknown;
  EXPECT_DOUBLE_EQ(ShareOf(use).joules, 15'000);
  EXPECT_DOUBLE_EQ(ShareOf(use).low, 15'000);
}

TEST(Energy, AnIdleStepHasItsPartOfTheRest) {
  EXPECT_DOUBLE_EQ(ShareOf(SomeUse(32, 0, 3200)).joules, 5'000);
  EXPECT_DOUBLE_EQ(ShareOf(SomeUse(32, 0, 0)).joules, 5'000);
}

TEST(Energy, OfASharedNodeWithoutCpuTimesNothingIsClaimed) {
  EXPECT_TRUE(std::isnan(ShareOf(SomeUse(16, kUnknown, 3200)).joules));
  EXPECT_TRUE(std::isnan(ShareOf(SomeUse(16, 100, kUnknown)).joules));
}

// Whoever shares a node, together they have all of its energy, and each is within its bounds.
TEST(Energy, TheSharesOfAllStepsAreTheNodesEnergy) {
  SeededNoise noise(7);
  for (int trial = 0; trial < 2000; ++trial) {
    NodeUse node;
    node.cpus = static_cast<double>(16 + noise.Below(112));
    node.seconds = static_cast<double>(10 + noise.Below(1000));
    const double rest = static_cast<double>(noise.Below(200));
    node.idle.lowest = rest + static_cast<double>(noise.Below(100));
    if (noise.Below(2) == 0) node.idle.watts = rest;
    node.joules = (node.idle.lowest + static_cast<double>(noise.Below(300))) * node.seconds;
    const size_t steps = 2 + noise.Below(5);
    std::vector<double> time(steps);
    for (double& one : time) {
      one = static_cast<double>(1 + noise.Below(1000));
      node.busy_cpu += one;
    }
    double sum = 0;
    for (const double one : time) {
      NodeUse use = node;
      use.step_cpu = one;
      use.allocated = node.cpus / static_cast<double>(steps);
      const EnergyShare share = ShareOf(use);
      EXPECT_LE(share.low, share.joules + 1e-6);
      EXPECT_GE(share.high, share.joules - 1e-6);
      sum += share.joules;
    }
    EXPECT_NEAR(sum, node.joules, 1e-9 * node.joules + 1e-9);
  }
}

TEST(Energy, PowerAtRestShowsWhereTheLoadChanges) {
  SeededNoise noise(3);
  std::vector<double> watts;
  std::vector<double> busy;
  for (int i = 0; i < 200; ++i) {
    busy.push_back(8 + 48 * (i % 100) / 100.0);
    watts.push_back(120 + 4 * busy.back() + 3 * noise.Normal());
  }
  const IdlePower idle = IdlePowerOf(watts, busy, 64);
  EXPECT_NEAR(idle.watts, 120, 3);
  EXPECT_NEAR(idle.lowest, 120 + 4 * 8, 12);
}

TEST(Energy, PowerAtRestDoesNotShowWhereTheLoadIsSteadyOrPowerFollowsSomethingElse) {
  SeededNoise noise(3);
  std::vector<double> steady;
  std::vector<double> wild;
  std::vector<double> busy;
  std::vector<double> same;
  for (int i = 0; i < 200; ++i) {
    same.push_back(60 + 0.5 * noise.Normal());
    busy.push_back(32 + 10 * noise.Normal());
    steady.push_back(120 + 4 * same.back());
    wild.push_back(300 + 50 * noise.Normal());
  }
  EXPECT_TRUE(std::isnan(IdlePowerOf(steady, same, 64).watts));
  EXPECT_TRUE(std::isnan(IdlePowerOf(wild, busy, 64).watts));
  EXPECT_FALSE(std::isnan(IdlePowerOf(wild, busy, 64).lowest));
  EXPECT_TRUE(std::isnan(IdlePowerOf({}, {}, 64).lowest));
  const std::vector<double> few(10, 100);
  EXPECT_TRUE(std::isnan(IdlePowerOf(few, few, 64).watts));
}

TEST(Energy, CarbonIsEnergyTimesPueTimesIntensity) {
  EXPECT_DOUBLE_EQ(CarbonGrams(2 * kJoulesPerKwh, 1.5, 300), 900);
}

TEST(Energy, SpeedsAreToldFromAmounts) {
  for (const char* unit : {"cells/s", "flops_per_second", "hertz", "steps per second"}) {
    EXPECT_TRUE(IsPerSecond(unit)) << unit;
  }
  for (const char* unit : {"cells", "1", "seconds", "bytes", ""}) {
    EXPECT_FALSE(IsPerSecond(unit)) << unit;
  }
}

}  // namespace
}  // namespace sonde::insight
