// Energy and power, on files in the formats of powercap, pm_counters and hwmon.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <vector>

#include "daemon/collect/sensors/sensor.h"
#include "daemon/collect/sensors/sensor_sources.h"
#include "tests/unit/collect_slow_clock.h"
#include "tests/unit/collect_tree.h"

// Counted in collect_allocations.cc.
extern std::atomic<size_t> allocations;

namespace sonde::collect::collect_power_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::IsNan;

class Power : public testing::Test {
 protected:
  void WriteZone(std::string_view zone, std::string_view name, uint64_t energy,
                 std::string_view range = "262143328850\n") const {
    const std::string directory = fmt::format("sys/class/powercap/{}", zone);
    tree_.Write(directory + "/name", fmt::format("{}\n", name));
    tree_.Write(directory + "/max_energy_range_uj", range);
    tree_.Write(directory + "/energy_uj", fmt::format("{}\n", energy));
  }
  void WriteCray(std::string_view file, std::string_view text) const {
    tree_.Write(fmt::format("sys/cray/pm_counters/{}", file), text);
  }
  void WriteHwmon(std::string_view file, std::string_view text) const {
    tree_.Write(fmt::format("sys/class/hwmon/{}", file), text);
  }
  std::unique_ptr<Source> Make(int level) {
    auto source = MakePowerSource(tree_.roots(), level, buffer_, clock_);
    source->Sample(now_);
    return source;
  }
  void Sample(Source& source, Nanos later = kSecond) { source.Sample(now_ += later); }
  static std::string Energy(std::string_view domain, std::string_view source) {
    return fmt::format("node_energy_joules_total{{domain=\"{}\",source=\"{}\"}}", domain, source);
  }
  static std::string Watts(std::string_view domain, std::string_view source) {
    return fmt::format("node_power_watts{{domain=\"{}\",source=\"{}\"}}", domain, source);
  }

  Tree tree_;
  ReadBuffer buffer_;
  SlowClock clock_;
  Nanos now_ = kSecond;
};

TEST_F(Power, RaplNamesAPartAfterItsPackage) {
  WriteZone("intel-rapl:0", "package-0", 5'000'000);
  WriteZone("intel-rapl:0:0", "core", 1'000'000);
  WriteZone("intel-rapl:0:1", "dram", 2'000'000);
  WriteZone("intel-rapl:1", "package-1-die-1", 3'000'000);
  WriteZone("intel-rapl:1:0", "dram", 4'000'000);
  WriteZone("intel-rapl:2", "psys", 9'500'000);
  WriteZone("intel-rapl-mmio:0", "package-0", 7);
  tree_.Write("sys/class/powercap/intel-rapl/enabled", "1\n");
  const auto two = Make(2);
  EXPECT_EQ(Value(*two, Energy("package-0", "rapl")), 5);
  EXPECT_EQ(Value(*two, Energy("dram-0", "rapl")), 2);
  EXPECT_EQ(Value(*two, Energy("dram-1-die-1", "rapl")), 4);
  EXPECT_EQ(Value(*two, Energy("psys", "rapl")), 9.5);
  EXPECT_EQ(two->series().size(), 5u);
  EXPECT_EQ(Value(*Make(4), Energy("core-0", "rapl")), 1);
}

TEST_F(Power, ACounterThatWrapsAroundGoesOn) {
  WriteZone("intel-rapl:0", "package-0", 262'143'000'000);
  const auto power = Make(2);
  WriteZone("intel-rapl:0", "package-0", 171'150);
  Sample(*power);
  EXPECT_DOUBLE_EQ(Value(*power, Energy("package-0", "rapl")), 262'143.5);
  WriteZone("intel-rapl:0", "package-0", 671'150);
  Sample(*power);
  EXPECT_DOUBLE_EQ(Value(*power, Energy("package-0", "rapl")), 262'144);
}

TEST_F(Power, ACounterThatIsSetBackDidNotWrapAround) {
  WriteZone("intel-rapl:0", "package-0", 10'000'000);
  WriteZone("intel-rapl:1", "package-1", 10'000'000, "");  // nobody knows its range
  const auto power = Make(2);
  WriteZone("intel-rapl:0", "package-0", 0);
  WriteZone("intel-rapl:1", "package-1", 0, "");
  Sample(*power);
  EXPECT_EQ(Value(*power, Energy("package-0", "rapl")), 10);
  EXPECT_EQ(Value(*power, Energy("package-1", "rapl")), 10);
  WriteZone("intel-rapl:0", "package-0", 3'000'000);
  Sample(*power);
  EXPECT_EQ(Value(*power, Energy("package-0", "rapl")), 13);
}

TEST_F(Power, AWrapAroundWhileItCouldNotBeReadIsCounted) {
  WriteZone("intel-rapl:0", "package-0", 900'000'000, "1000000000\n");
  const auto power = Make(2);
  tree_.Write("sys/class/powercap/intel-rapl:0/energy_uj", "");
  Sample(*power);
  EXPECT_THAT(Value(*power, Energy("package-0", "rapl")), IsNan());
  WriteZone("intel-rapl:0", "package-0", 50'000'000, "1000000000\n");
  Sample(*power);
  EXPECT_EQ(Value(*power, Energy("package-0", "rapl")), 1050);
}

TEST_F(Power, WhatOnlyRootMayReadIsNotedOnceFromLevelThree) {
  WriteZone("intel-rapl:0", "package-0", 1);
  WriteZone("intel-rapl:1", "package-1", 1);
  tree_.Remove("sys/class/powercap/intel-rapl:0/energy_uj");
  tree_.Remove("sys/class/powercap/intel-rapl:1/energy_uj");
  const auto two = Make(2);
  EXPECT_THAT(two->series(), IsEmpty());
  EXPECT_THAT(two->TakeNotes(), IsEmpty());
  const auto three = Make(3);
  EXPECT_THAT(three->series(), IsEmpty());
  EXPECT_THAT(three->TakeNotes(), ElementsAre(HasSubstr("intel-rapl:0/energy_uj")));
  Sample(*three, 100 * kSecond);
  EXPECT_THAT(three->TakeNotes(), IsEmpty());
}

TEST_F(Power, ANodeWithoutAnyHasNoSeriesAndNoNote) {
  const auto power = Make(4);
  EXPECT_THAT(power->series(), IsEmpty());
  EXPECT_THAT(power->TakeNotes(), IsEmpty());
}

TEST_F(Power, CrayCountsForTheNodeAndItsParts) {
  for (const char* part : {"", "cpu_", "memory_", "accel0_", "accel3_", "cpu0_"}) {
    WriteCray(fmt::format("{}energy", part), "1234 J 1600000000 us\n");
    WriteCray(fmt::format("{}power", part), "321 W 1600000000 us\n");
  }
  WriteCray("accel0_power_cap", "400 W\n");
  WriteCray("power_cap", "0 W\n");
  WriteCray("cpu_temp", "40 C 1600000000 us\n");
  WriteCray("startup", "1600000000\n");
  const auto two = Make(2);
  EXPECT_EQ(Value(*two, Energy("node", "cray")), 1234);
  EXPECT_EQ(Value(*two, Watts("node", "cray")), 321);
  EXPECT_EQ(Value(*two, Energy("memory", "cray")), 1234);
  EXPECT_EQ(Value(*two, Watts("accel3", "cray")), 321);
  EXPECT_EQ(two->series().size(), 10u);
  EXPECT_EQ(Value(*Make(4), Watts("cpu0", "cray")), 321);
}

TEST_F(Power, CrayInAnotherUnitOrCutShortIsMissing) {
  WriteCray("energy", "1234 J 1600000000 us\n");
  WriteCray("power", "1234 W 1600000000 us\n");
  const auto power = Make(2);
  for (const char* text : {"1234", "", "J 1", "1234 kJ 1 us\n", "99999999999999999999999 J 1 us\n",
                           "-4 J 1 us\n", "1234J\n", "1234 W 1 us\n"}) {
    WriteCray("energy", text);
    Sample(*power);
    EXPECT_THAT(Value(*power, Energy("node", "cray")), IsNan()) << text;
    EXPECT_EQ(Value(*power, Watts("node", "cray")), 1234);
  }
  WriteCray("energy", "1300 J 1600000000 us\n");
  Sample(*power);
  EXPECT_EQ(Value(*power, Energy("node", "cray")), 1300);
}

TEST_F(Power, SensorsAreNamedByChipAndLabel) {
  WriteHwmon("hwmon0/name", "power_meter\n");
  WriteHwmon("hwmon0/power1_average", "345000000\n");
  std::filesystem::create_directory_symlink("../../../ACPI000D:00",
                                            tree_.path() + "/sys/class/hwmon/hwmon0/device");
  WriteHwmon("hwmon1/name", "board\n");
  WriteHwmon("hwmon1/power1_input", "7500000\n");
  WriteHwmon("hwmon1/power1_average", "8\n");
  WriteHwmon("hwmon1/power1_label", "CPU rail\n");
  WriteHwmon("hwmon1/power2_input", "-2000000\n");  // a battery
  WriteHwmon("hwmon1/power2_label", "CPU rail\n");
  WriteHwmon("hwmon1/energy1_input", "42000000\n");
  WriteHwmon("hwmon1/energy1_label", "\x01\n");
  WriteHwmon("hwmon1/power1_cap", "1\n");
  WriteHwmon("hwmon1/powerx_input", "1\n");
  WriteHwmon("hwmon2/name", "board\n");
  WriteHwmon("hwmon2/power1_input", "1000000\n");
  const auto power = Make(2);
  EXPECT_EQ(Value(*power, Watts("power_meter-ACPI000D:00/power1", "hwmon")), 345);
  EXPECT_EQ(Value(*power, Watts("board/CPU rail", "hwmon")), 7.5);
  EXPECT_EQ(Value(*power, Watts("board/power2", "hwmon")), -2);
  EXPECT_EQ(Value(*power, Energy("board/energy1", "hwmon")), 42);
  EXPECT_EQ(Value(*power, Watts("board-hwmon2/power1", "hwmon")), 1);
}

TEST_F(Power, SensorsAreReadOnceASecondAtMost) {
  WriteHwmon("hwmon0/name", "board\n");
  WriteHwmon("hwmon0/power1_input", "1000000\n");
  const auto power = Make(2);
  WriteHwmon("hwmon0/power1_input", "2000000\n");
  Sample(*power, kSecond / 10);
  EXPECT_EQ(Value(*power, Watts("board/power1", "hwmon")), 1);
  Sample(*power, 9 * kSecond / 10);
  EXPECT_EQ(Value(*power, Watts("board/power1", "hwmon")), 2);
}

TEST_F(Power, ASlowChipIsLeftOutWithOneNote) {
  WriteHwmon("hwmon0/name", "slow\n");
  WriteHwmon("hwmon0/power1_input", "1000000\n");
  WriteHwmon("hwmon0/power2_input", "1000000\n");
  WriteCray("power", "300 W 1 us\n");
  clock_.step = 2 * kMillisecond;
  const auto power = Make(2);
  EXPECT_EQ(power->series().size(), 1u);
  EXPECT_THAT(power->TakeNotes(), ElementsAre(HasSubstr("left out: slow")));
  WriteCray("power", "");
  for (int i = 0; i < 3; ++i) Sample(*power, 100 * kSecond);
  EXPECT_EQ(power->series().size(), 1u);
  EXPECT_THAT(power->TakeNotes(), IsEmpty());
}

TEST_F(Power, AChipThatComesBackUnderAnotherNumberIsFound) {
  WriteHwmon("hwmon0/name", "board\n");
  WriteHwmon("hwmon0/power1_input", "1000000\n");
  WriteZone("intel-rapl:0", "package-0", 999'000'000, "1000000000\n");
  const auto power = Make(2);
  WriteZone("intel-rapl:0", "package-0", 1'000'000, "1000000000\n");
  tree_.Write("sys/class/hwmon/hwmon0/power1_input", "");
  Sample(*power);
  EXPECT_EQ(Value(*power, Energy("package-0", "rapl")), 1001);
  tree_.Remove("sys/class/hwmon/hwmon0");
  WriteHwmon("hwmon5/name", "board\n");
  WriteHwmon("hwmon5/power1_input", "4000000\n");
  Sample(*power, 100 * kSecond);
  EXPECT_EQ(Value(*power, Watts("board/power1", "hwmon")), 4);
  EXPECT_EQ(Value(*power, Energy("package-0", "rapl")), 1001);  // it did not start anew
}

TEST_F(Power, AFastSensorIsNotMeasuredAgain) {
  WriteHwmon("hwmon0/name", "board\n");
  WriteHwmon("hwmon0/power1_input", "1000000\n");
  WriteHwmon("hwmon0/power2_input", "");  // has it look for sensors again
  const auto power = Make(2);
  clock_.step = 2 * kMillisecond;
  for (int i = 0; i < 3; ++i) Sample(*power, 100 * kSecond);
  EXPECT_EQ(Value(*power, Watts("board/power1", "hwmon")), 1);
}

TEST_F(Power, AWarmTickAllocatesNothing) {
  for (int i = 0; i < 8; ++i) WriteZone(fmt::format("intel-rapl:{}", i), fmt::format("p{}", i), 1);
  WriteCray("energy", "1234 J 1 us\n");
  WriteHwmon("hwmon0/name", "board\n");
  WriteHwmon("hwmon0/power1_input", "1000000\n");
  const auto power = Make(4);
  Sample(*power);
  const size_t before = allocations;
  for (int i = 0; i < 200; ++i) Sample(*power);
  EXPECT_EQ(allocations, before);
}

TEST_F(Power, HostileTreesGiveNoSeries) {
  WriteZone("intel-rapl:", "", 1);
  WriteZone("intel-rapl:0:0:0", "a\x01z", 1);
  WriteZone("intel-rapl:7", std::string(5000, 'x'), 1);
  WriteHwmon("hwmon0/name", std::string(5000, 'y'));
  WriteHwmon("hwmon0/power1_input", "1\n");
  WriteHwmon("hwmon1/name", "board\n");
  WriteHwmon("hwmon1/power99999999999999999999_input", "1\n");
  WriteHwmon("hwmon1/power_input", "1\n");
  EXPECT_THAT(Make(2)->series(), IsEmpty());
}

TEST(ParseSensor, IsTheWholeText) {
  EXPECT_EQ(ParseSensor("45000\n"), 45000);
  EXPECT_EQ(ParseSensor("-5000\n"), -5000);
  EXPECT_EQ(ParseSensor("0"), 0);
  for (const char* text : {"", "\n", "-", "--1", "- 1", "4 5\n", "0x10\n", "1.5\n", "nan\n",
                           "18446744073709551616\n"}) {
    EXPECT_THAT(ParseSensor(text), IsNan()) << text;
  }
}

}  // namespace
}  // namespace sonde::collect::collect_power_test
