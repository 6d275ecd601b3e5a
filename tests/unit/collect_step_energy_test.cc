// The step's share of the node's energy.
#include <gtest/gtest.h>

#include <cmath>

#include "daemon/collect/read/parse.h"
#include "daemon/collect/sensors/step_energy.h"
#include "tests/unit/collect_tree.h"

namespace sonde::collect::collect_step_energy_test {
namespace {

// Gives the values it was told.
class Told final : public Source {
 public:
  void Add(const std::string& metric, Tags tags, double value) {
    Series& s = series_.emplace_back();
    s.metric.name = metric;
    s.tags = std::move(tags);
    values_.push_back(value);
    ++generation_;
  }
  void Set(size_t i, double value) { values_[i] = value; }

  std::string_view name() const override { return "told"; }
  Group group() const override { return Group::kOs; }
  bool counts_from_boot() const override { return false; }
  void Sample(Nanos) override {}
};

class StepEnergy : public testing::Test {
 protected:
  StepEnergy() {
    cpu_.Add("node_cpu_seconds_total", {{"mode", "user"}}, 100);
    cpu_.Add("node_cpu_seconds_total", {{"mode", "idle"}}, 1000);
    cpu_.Add("node_cpu_seconds_total", {{"mode", "system"}}, 50);
    tasks_.Add("task_cpu_seconds_total", {{"mode", "user"}, {"task", "0"}}, 0);
    tasks_.Add("task_cpu_seconds_total", {{"mode", "user"}, {"task", "1"}}, 0);
  }
  void Rapl() {
    energy_.Add("node_energy_joules_total", {{"domain", "package-0"}, {"source", "rapl"}}, 5000);
    energy_.Add("node_energy_joules_total", {{"domain", "dram-0"}, {"source", "rapl"}}, 500);
    energy_.Add("node_energy_joules_total", {{"domain", "psys"}, {"source", "rapl"}}, 9999);
    energy_.Add("node_energy_joules_total", {{"domain", "core-0"}, {"source", "rapl"}}, 9999);
    energy_.Add("node_energy_joules_total", {{"domain", "CPU1"}, {"source", "hwmon"}}, 9999);
  }
  double After(Nanos now) {
    source_.Sample(now);
    return source_.values().empty() ? kMissing : source_.values()[0];
  }

  Told cpu_, tasks_, energy_;
  StepEnergySource source_{cpu_, tasks_, {&energy_}};
};

TEST_F(StepEnergy, IsTheShareOfTheCpuTimeOfWhatTheNodeUsed) {
  Rapl();
  EXPECT_EQ(After(kSecond), 0);
  cpu_.Set(0, 102);  // 2 s in user mode, 1 s idle, 2 s in the system
  cpu_.Set(1, 1001);
  cpu_.Set(2, 52);
  tasks_.Set(0, 0.5);
  tasks_.Set(1, 0.5);
  energy_.Set(0, 5080);  // with 20 J of DRAM: 100 J
  energy_.Set(1, 520);
  energy_.Set(2, 99999);
  EXPECT_DOUBLE_EQ(After(2 * kSecond), 25);
  energy_.Set(0, 5180);  // nobody computes
  EXPECT_DOUBLE_EQ(After(3 * kSecond), 25);
  cpu_.Set(0, 103);
  tasks_.Set(0, 2.5);  // more than the node's, whose times are coarser: all of it
  energy_.Set(0, 5190);
  EXPECT_DOUBLE_EQ(After(4 * kSecond), 35);
}

TEST_F(StepEnergy, IntervalsAreASecondOrMore) {
  Rapl();
  After(kSecond);
  cpu_.Set(0, 101);
  tasks_.Set(0, 1);
  energy_.Set(0, 5100);
  EXPECT_EQ(After(kSecond + kSecond / 2), 0);
  EXPECT_DOUBLE_EQ(After(2 * kSecond), 100);
  cpu_.Set(0, 102);
  tasks_.Set(0, 1.5);
  energy_.Set(0, 5140);
  source_.SampleLast(2 * kSecond + kSecond / 4);  // the rest of the step
  EXPECT_DOUBLE_EQ(source_.values()[0], 120);
}

TEST_F(StepEnergy, IsMissingWhileAnythingIsMissingAndCatchesUp) {
  Rapl();
  After(kSecond);
  cpu_.Set(0, 104);
  tasks_.Set(0, 1);
  energy_.Set(0, kMissing);
  EXPECT_TRUE(std::isnan(After(2 * kSecond)));
  energy_.Set(0, 5100);
  EXPECT_DOUBLE_EQ(After(3 * kSecond), 25);
}

TEST_F(StepEnergy, AMeterThatIsResetGivesNoSpike) {
  Rapl();
  After(kSecond);
  cpu_.Set(0, 101);
  tasks_.Set(0, 1);
  energy_.Set(0, 10);
  EXPECT_EQ(After(2 * kSecond), 0);
  cpu_.Set(0, 102);
  tasks_.Set(0, 2);
  energy_.Set(0, 60);
  EXPECT_DOUBLE_EQ(After(3 * kSecond), 50);
}

TEST_F(StepEnergy, CrayHasItsProcessorsAndMemory) {
  energy_.Add("node_energy_joules_total", {{"domain", "node"}, {"source", "cray"}}, 900);
  energy_.Add("node_energy_joules_total", {{"domain", "cpu"}, {"source", "cray"}}, 500);
  energy_.Add("node_energy_joules_total", {{"domain", "memory"}, {"source", "cray"}}, 100);
  After(kSecond);
  cpu_.Set(0, 101);
  tasks_.Set(0, 1);
  energy_.Set(1, 510);
  energy_.Set(2, 105);
  EXPECT_DOUBLE_EQ(After(2 * kSecond), 15);
}

TEST_F(StepEnergy, WithoutAMeterThereIsNoSeries) {
  After(kSecond);
  EXPECT_TRUE(source_.series().empty());
}

}  // namespace
}  // namespace sonde::collect::collect_step_energy_test
