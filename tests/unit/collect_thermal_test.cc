// Temperatures, throttling and frequencies, on files in the formats of sysfs.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <vector>

#include "daemon/collect/sensors/sensor_sources.h"
#include "tests/unit/collect_slow_clock.h"
#include "tests/unit/collect_tree.h"

// Counted in collect_allocations.cc.
extern std::atomic<size_t> allocations;

namespace sonde::collect::collect_thermal_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::IsNan;

class Thermal : public testing::Test {
 protected:
  // A chip of processor sensors as coretemp's: the package, then its cores.
  void WriteCoretemp(int hwmon, int package, const std::vector<int>& celsius) const {
    WriteHwmon(hwmon, "name", "coretemp");
    for (size_t i = 0; i < celsius.size(); ++i) {
      WriteHwmon(hwmon, fmt::format("temp{}_input", i + 1), fmt::format("{}", 1000 * celsius[i]));
      WriteHwmon(hwmon, fmt::format("temp{}_label", i + 1),
                 i == 0 ? fmt::format("Package id {}", package) : fmt::format("Core {}", i - 1));
    }
  }
  void WriteHwmon(int hwmon, std::string_view file, std::string_view line) const {
    tree_.Write(fmt::format("sys/class/hwmon/hwmon{}/{}", hwmon, file), fmt::format("{}\n", line));
  }
  void WriteZone(int zone, std::string_view type, std::string_view milli) const {
    const std::string directory = fmt::format("sys/class/thermal/thermal_zone{}", zone);
    tree_.Write(directory + "/type", fmt::format("{}\n", type));
    tree_.Write(directory + "/temp", milli);
  }
  void WriteCpu(int cpu, std::string_view file, std::string_view line) const {
    tree_.Write(fmt::format("sys/devices/system/cpu/cpu{}/{}", cpu, file),
                fmt::format("{}\n", line));
  }
  void WriteThrottle(int cpu, int core, int package) const {
    WriteCpu(cpu, "thermal_throttle/core_throttle_count", std::to_string(core));
    WriteCpu(cpu, "thermal_throttle/package_throttle_count", std::to_string(package));
    WriteCpu(cpu, "thermal_throttle/core_throttle_total_time_ms", std::to_string(10 * core));
    WriteCpu(cpu, "thermal_throttle/package_throttle_total_time_ms", std::to_string(10 * package));
  }
  void Make(int level) {
    const Roots roots = tree_.roots();
    sources_.clear();
    sources_.push_back(MakeTemperatureSource(roots, level, buffer_, clock_));
    sources_.push_back(MakeThrottlingSource(roots, level, buffer_));
    if (level >= 4) sources_.push_back(MakeFrequencySource(roots, buffer_));
    Sample();
  }
  void Sample(Nanos later = kSecond) {
    now_ += later;
    for (const auto& source : sources_) source->Sample(now_);
  }
  const Source& Temperatures() const { return *sources_[0]; }
  const Source& Throttling() const { return *sources_[1]; }
  const Source& Frequencies() const { return *sources_.at(2); }
  size_t Count() const {
    size_t n = 0;
    for (const auto& source : sources_) n += source->series().size();
    return n;
  }

  Tree tree_;
  ReadBuffer buffer_;
  SlowClock clock_;
  Nanos now_ = 0;
  std::vector<std::unique_ptr<Source>> sources_;
};

TEST_F(Thermal, PackagesBelowLevelFourAllSensorsAtIt) {
  WriteCoretemp(0, 0, {55, 50, 54});
  WriteCoretemp(1, 1, {61, 60});
  WriteHwmon(2, "name", "k10temp");
  WriteHwmon(2, "temp1_input", "70500");
  WriteHwmon(2, "temp1_label", "Tctl");
  WriteHwmon(2, "temp3_input", "72250");
  WriteHwmon(2, "temp3_label", "Tccd1");
  WriteHwmon(3, "name", "nvme");
  WriteHwmon(3, "temp1_input", "-5000");
  WriteZone(0, "x86_pkg_temp", "99000\n");  // hwmon has it already
  Make(2);
  EXPECT_EQ(Value(Temperatures(), "node_package_temperature_celsius{chip=\"coretemp\"}"), 55);
  EXPECT_EQ(Value(Temperatures(), "node_package_temperature_celsius{chip=\"coretemp-hwmon1\"}"),
            61);
  EXPECT_EQ(Value(Temperatures(), "node_package_temperature_celsius{chip=\"k10temp\"}"), 72.25);
  EXPECT_EQ(Count(), 3u);
  Make(4);
  EXPECT_EQ(Value(Temperatures(), "node_package_temperature_celsius{chip=\"coretemp\"}"), 55);
  EXPECT_EQ(Value(Temperatures(), "node_temperature_celsius{chip=\"coretemp\",sensor=\"Core 1\"}"),
            54);
  EXPECT_EQ(Value(Temperatures(), "node_temperature_celsius{chip=\"nvme\",sensor=\"temp1\"}"), -5);
  EXPECT_EQ(Count(), 3u + 8u);
}

TEST_F(Thermal, ZonesAreReadWhereHwmonHasNoTemperatures) {
  WriteHwmon(0, "name", "fans");
  WriteHwmon(0, "fan1_input", "3000");
  WriteZone(0, "acpitz", "40000\n");
  WriteZone(1, "cpu0-thermal", "66000\n");
  Make(2);
  EXPECT_EQ(Value(Temperatures(), "node_package_temperature_celsius{chip=\"thermal_zone1\"}"), 66);
  EXPECT_EQ(Count(), 1u);
  Make(4);
  EXPECT_EQ(
      Value(Temperatures(), "node_temperature_celsius{chip=\"thermal_zone0\",sensor=\"acpitz\"}"),
      40);
}

TEST_F(Thermal, ASensorThatFailsIsMissingAndReadAgainLater) {
  WriteCoretemp(0, 0, {55});
  Make(2);
  const std::string series = "node_package_temperature_celsius{chip=\"coretemp\"}";
  for (const char* text : {"", "warm", "55.5.5", "-300000", "99999999999999999999999"}) {
    WriteHwmon(0, "temp1_input", text);
    Sample();
    EXPECT_THAT(Value(Temperatures(), series), IsNan()) << text;
  }
  WriteCoretemp(0, 0, {57});
  Sample();
  EXPECT_EQ(Value(Temperatures(), series), 57);
}

TEST_F(Thermal, AChipThatComesBackUnderAnotherNumberIsFound) {
  WriteCoretemp(0, 0, {55});
  Make(2);
  WriteHwmon(0, "temp1_input", "");
  Sample();
  tree_.Remove("sys/class/hwmon/hwmon0");
  WriteCoretemp(7, 0, {58});
  Sample(100 * kSecond);
  EXPECT_EQ(Value(Temperatures(), "node_package_temperature_celsius{chip=\"coretemp\"}"), 58);
}

TEST_F(Thermal, SensorsAreReadOnceASecondAtMost) {
  WriteCoretemp(0, 0, {55});
  Make(2);
  WriteCoretemp(0, 0, {56});
  Sample(kSecond / 10);
  EXPECT_EQ(Temperatures().values()[0], 55);
  Sample(9 * kSecond / 10);
  EXPECT_EQ(Temperatures().values()[0], 56);
}

TEST_F(Thermal, ASlowChipIsLeftOutWithOneNote) {
  WriteCoretemp(0, 0, {55, 50});
  clock_.step = 2 * kMillisecond;
  Make(4);
  EXPECT_EQ(Count(), 0u);
  EXPECT_THAT(sources_[0]->TakeNotes(), ElementsAre(HasSubstr("left out: coretemp")));
  Sample(100 * kSecond);
  EXPECT_THAT(sources_[0]->TakeNotes(), IsEmpty());
}

TEST_F(Thermal, ThreadsOfACoreCountItsThrottlingOnce) {
  constexpr int kCpus = 256;  // two packages of 64 cores with two threads
  for (int cpu = 0; cpu < kCpus; ++cpu) {
    WriteThrottle(cpu, 1 + cpu % 128 / 64, 7);
    WriteCpu(cpu, "topology/thread_siblings_list",
             fmt::format("{},{}", cpu % 128, cpu % 128 + 128));
    WriteCpu(cpu, "topology/core_siblings_list",
             cpu % 128 < 64 ? "0-63,128-191" : "64-127,192-255");
    WriteCpu(cpu, "cpufreq/scaling_cur_freq", std::to_string(1'000'000 + 10'000 * cpu));
  }
  tree_.Write("sys/devices/system/cpu/cpufreq/boost", "1\n");
  Make(2);
  EXPECT_EQ(Value(Throttling(), "node_cpu_core_throttles_total"), 64 + 2 * 64);
  EXPECT_EQ(Value(Throttling(), "node_cpu_package_throttles_total"), 14);
  EXPECT_EQ(Count(), 2u);
  Make(4);
  EXPECT_DOUBLE_EQ(Value(Throttling(), "node_cpu_core_throttle_seconds_total"), 1.92);
  EXPECT_DOUBLE_EQ(Value(Throttling(), "node_cpu_package_throttle_seconds_total"), 0.14);
  EXPECT_EQ(Value(Frequencies(), "node_cpu_frequency_lowest_hertz"), 1e9);
  EXPECT_EQ(Value(Frequencies(), "node_cpu_frequency_highest_hertz"), 3.55e9);
  EXPECT_EQ(Value(Frequencies(), "node_cpu_frequency_mean_hertz"), 2.275e9);
}

TEST_F(Thermal, AProcessorThatGoesAndComesBackIsNoJump) {
  WriteThrottle(0, 100, 1);
  WriteThrottle(1, 500, 1);
  Make(2);
  EXPECT_EQ(Value(Throttling(), "node_cpu_core_throttles_total"), 600);
  WriteCpu(1, "thermal_throttle/core_throttle_count", "");
  WriteCpu(0, "thermal_throttle/core_throttle_count", "103");
  Sample();
  EXPECT_EQ(Value(Throttling(), "node_cpu_core_throttles_total"), 603);
  WriteCpu(1, "thermal_throttle/core_throttle_count", "0");  // it counts anew
  Sample();
  EXPECT_EQ(Value(Throttling(), "node_cpu_core_throttles_total"), 603);
  WriteCpu(1, "thermal_throttle/core_throttle_count", "2");
  Sample();
  EXPECT_EQ(Value(Throttling(), "node_cpu_core_throttles_total"), 605);
  WriteCpu(0, "thermal_throttle/core_throttle_count", "-1");
  WriteCpu(1, "thermal_throttle/core_throttle_count", "x");
  Sample();
  EXPECT_THAT(Value(Throttling(), "node_cpu_core_throttles_total"), IsNan());
}

TEST_F(Thermal, ACountThatIsReadLateIsNoJump) {
  WriteThrottle(0, 100, 1);
  WriteThrottle(1, 500, 1);
  WriteCpu(1, "thermal_throttle/core_throttle_count", "");
  Make(2);
  WriteThrottle(1, 500, 1);
  Sample();
  EXPECT_EQ(Value(Throttling(), "node_cpu_core_throttles_total"), 100);
  WriteThrottle(1, 501, 1);
  Sample();
  EXPECT_EQ(Value(Throttling(), "node_cpu_core_throttles_total"), 101);
}

TEST_F(Thermal, FrequenciesThatAreNotKnownDoNotCount) {
  WriteCpu(0, "cpufreq/scaling_cur_freq", "2000000");
  WriteCpu(1, "cpufreq/scaling_cur_freq", "<unknown>");
  WriteCpu(2, "cpufreq/scaling_cur_freq", "0");
  Make(4);
  EXPECT_EQ(Value(Frequencies(), "node_cpu_frequency_mean_hertz"), 2e9);
  EXPECT_EQ(Value(Frequencies(), "node_cpu_frequency_lowest_hertz"), 2e9);
  WriteCpu(0, "cpufreq/scaling_cur_freq", "");
  Sample();
  for (const double value : Frequencies().values()) EXPECT_THAT(value, IsNan());
}

TEST_F(Thermal, ANodeWithoutAnyHasNoSeriesAndNoNote) {
  for (const int level : {2, 4}) {
    Make(level);
    EXPECT_EQ(Count(), 0u);
    for (const auto& source : sources_) EXPECT_THAT(source->TakeNotes(), IsEmpty());
  }
}

TEST_F(Thermal, AWarmTickAllocatesNothing) {
  WriteCoretemp(0, 0, {55, 50, 51});
  for (int cpu = 0; cpu < 16; ++cpu) {
    WriteThrottle(cpu, 1, 1);
    WriteCpu(cpu, "cpufreq/scaling_cur_freq", "2000000");
  }
  Make(4);
  Sample();
  const size_t before = allocations;
  for (int i = 0; i < 200; ++i) Sample();
  EXPECT_EQ(allocations, before);
}

}  // namespace
}  // namespace sonde::collect::collect_thermal_test
