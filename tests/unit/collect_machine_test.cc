// Energy meters and memory controllers: which a node has, and what is read of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>

#include "daemon/collect/counters/machine_source.h"
#include "tests/unit/collect_feed.h"
#include "tests/unit/collect_tree.h"

namespace sonde::collect::collect_machine_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::IsNan;

// A node of two sockets.
class Machine : public testing::Test {
 protected:
  Machine() {
    tree_.Write("sys/devices/system/cpu/cpu0/topology/physical_package_id", "0\n");
    tree_.Write("sys/devices/system/cpu/cpu32/topology/physical_package_id", "1\n");
  }
  void Device(const std::string& name, const std::string& file, const std::string& text) const {
    tree_.Write("sys/bus/event_source/devices/" + name + "/" + file, text);
  }
  void Power() const {
    Device("power", "type", "30\n");
    Device("power", "cpumask", "0,32\n");
    Device("power", "format/event", "config:0-7\n");
    Device("power", "events/energy-pkg", "event=0x02\n");
    Device("power", "events/energy-pkg.scale", "2.3283064365386962890625e-10\n");
    Device("power", "events/energy-pkg.unit", "Joules\n");
    Device("power", "events/energy-cores", "event=0x01\n");
    Device("power", "events/energy-cores.scale", "2.3283064365386962890625e-10\n");
    Device("power", "events/energy-cores.unit", "Joules\n");
  }
  void Imc(const std::string& name) const {
    Device(name, "cpumask", "0,32\n");
    Device(name, "format/event", "config:0-7\n");
    Device(name, "format/umask", "config:8-15\n");
    for (const char* event : {"cas_count_read", "cas_count_write"}) {
      Device(name, std::string("events/") + event,
             event[10] == 'r' ? "event=0x04,umask=0x03\n" : "event=0x04,umask=0x0c\n");
      Device(name, std::string("events/") + event + ".scale", "6.103515625e-5\n");
      Device(name, std::string("events/") + event + ".unit", "MiB\n");
    }
  }
  std::vector<std::string> Found(int level) const {
    std::vector<std::string> found;
    for (const MachineCounter& c : FindMachineCounters(tree_.roots(), level)) {
      const char* kind = c.kind == MachineCounter::Kind::kEnergy ? "energy"
                         : c.kind == MachineCounter::Kind::kRead ? "read"
                                                                 : "written";
      char text[160];
      std::snprintf(text, sizeof(text), "%s/%llx@%u %s %s", c.event.pmu,
                    static_cast<unsigned long long>(c.event.config), c.event.cpu, kind,
                    c.part.c_str());
      found.push_back(text);
    }
    return found;
  }

  Tree tree_;
};

TEST_F(Machine, EnergyMetersAreFoundForEachSocket) {
  Power();
  EXPECT_THAT(Found(3), ElementsAre("power/2@0 energy package-0", "power/2@32 energy package-1"));
  EXPECT_THAT(Found(4), ElementsAre("power/2@0 energy package-0", "power/2@32 energy package-1",
                                    "power/1@0 energy core-0", "power/1@32 energy core-1"));
}

TEST_F(Machine, MemoryControllersOfIntelAmdAndNvidiaAreFound) {
  Imc("uncore_imc_0");
  EXPECT_THAT(Found(3),
              ElementsAre("uncore_imc_0/304@0 read 0", "uncore_imc_0/304@32 read 1",
                          "uncore_imc_0/c04@0 written 0", "uncore_imc_0/c04@32 written 1"));
  tree_.Remove("sys/bus/event_source/devices/uncore_imc_0");
  Device("amd_umc_3", "cpumask", "32\n");
  Device("amd_umc_3", "format/event", "config:0-7\n");
  Device("amd_umc_3", "format/rdwrmask", "config:8-9\n");
  EXPECT_THAT(Found(3), ElementsAre("amd_umc_3/10a@32 read 1", "amd_umc_3/20a@32 written 1"));
  tree_.Remove("sys/bus/event_source/devices/amd_umc_3");
  Device("nvidia_scf_pmu_0", "cpumask", "0\n");
  Device("nvidia_scf_pmu_0", "format/event", "config:0-31\n");
  Device("nvidia_scf_pmu_0", "events/cmem_rd_data", "event=0x1a5\n");
  Device("nvidia_scf_pmu_0", "events/cmem_wr_total_bytes", "event=0x1a6\n");
  EXPECT_THAT(Found(3),
              ElementsAre("nvidia_scf_pmu_0/1a5@0 read 0", "nvidia_scf_pmu_0/1a6@0 written 0"));
}

TEST_F(Machine, WhatCannotBeUnderstoodIsPassedOver) {
  Power();
  Device("power", "events/energy-pkg.unit", "Furlongs\n");
  EXPECT_THAT(Found(3), IsEmpty());
  Device("power", "events/energy-pkg.unit", "Joules\n");
  Device("power", "events/energy-pkg.scale", "none\n");
  EXPECT_THAT(Found(3), IsEmpty());
  Device("power", "events/energy-pkg.scale", "1\n");
  Device("power", "events/energy-pkg", "event=0x102\n");  // does not fit into 8 bits
  EXPECT_THAT(Found(3), IsEmpty());
  Device("power", "events/energy-pkg", "../../x=1\n");
  EXPECT_THAT(Found(3), IsEmpty());
  Device("power", "events/energy-pkg", "event=0x02\n");
  Device("power", "cpumask", "x\n");
  EXPECT_THAT(Found(3), IsEmpty());
  Device("power", "cpumask", "0-999999999\n");
  EXPECT_THAT(Found(3), IsEmpty());
}

TEST_F(Machine, TermsMayLieInSeveralPlaces) {
  const std::string format = tree_.path() + "/format";
  tree_.Write("format/event", "config:0-7,32-35\n");
  tree_.Write("format/flag", "config:63\n");
  tree_.Write("format/other", "config1:0-7\n");
  EXPECT_EQ(*EncodeTerms("event=0x5ab", format), 0x5000000abu);
  EXPECT_EQ(*EncodeTerms("event=1,flag", format), 0x8000000000000001u);
  EXPECT_FALSE(EncodeTerms("event=0x10ab5", format).ok());
  EXPECT_FALSE(EncodeTerms("other=1", format).ok());
  EXPECT_FALSE(EncodeTerms("event=?", format).ok());
  EXPECT_FALSE(EncodeTerms("=1", format).ok());
}

TEST_F(Machine, ASocketsControllersAreAddedUpAndReadOnceASecond) {
  Imc("uncore_imc_0");
  Imc("uncore_imc_1");
  MachineSource source(tree_.roots(), 3);
  ASSERT_EQ(source.events().size(), 8u);  // each: read and written, on two sockets
  const Feed feeds[8];
  std::vector<int> descriptors;
  for (const Feed& feed : feeds) descriptors.push_back(feed.descriptor());
  source.Take(0, std::span(descriptors).first(5));
  source.Take(5, std::span(descriptors).subspan(5));
  const auto say = [&](size_t i, uint64_t value, uint64_t enabled, uint64_t running) {
    feeds[i].SayWords({value, enabled, running});
  };
  for (size_t i = 0; i < 8; ++i) say(i, 1000 * (i + 1), 10, 10);
  source.Sample(10 * kSecond);
  constexpr char kRead0[] = "node_memory_traffic_bytes_total{direction=\"read\",socket=\"0\"}";
  EXPECT_DOUBLE_EQ(Value(source, kRead0), 64 * (1000 + 5000));
  EXPECT_DOUBLE_EQ(
      Value(source, "node_memory_traffic_bytes_total{direction=\"write\",socket=\"1\"}"),
      64 * (4000 + 8000));
  source.Sample(10 * kSecond + kSecond / 10);
  EXPECT_THAT(Value(source, kRead0), IsNan());
  for (size_t i = 0; i < 8; ++i) say(i, 1500, 15, 15);
  source.SampleLast(10 * kSecond + kSecond / 5);
  EXPECT_DOUBLE_EQ(Value(source, kRead0), 64 * (1500 + 1500));
  for (size_t i = 0; i < 8; ++i) say(i, 2000, 20, 10);  // half of the time
  source.Sample(11 * kSecond);
  EXPECT_DOUBLE_EQ(Value(source, kRead0), 64 * (4000 + 4000));
  source.Sample(12 * kSecond);  // nothing to read
  EXPECT_THAT(Value(source, kRead0), IsNan());
}

TEST_F(Machine, EnergyHasTheScaleOfItsFile) {
  Power();
  MachineSource source(tree_.roots(), 3);
  const Feed feeds[2];
  source.Take(0, std::vector<int>{feeds[0].descriptor(), feeds[1].descriptor()});
  feeds[0].SayWords({uint64_t{100} << 32, 1, 1});
  feeds[1].SayWords({uint64_t{7} << 32, 1, 1});
  source.Sample(kSecond);
  EXPECT_DOUBLE_EQ(Value(source, "node_energy_joules_total{domain=\"package-0\",source=\"perf\"}"),
                   100);
  EXPECT_DOUBLE_EQ(Value(source, "node_energy_joules_total{domain=\"package-1\",source=\"perf\"}"),
                   7);
}

TEST_F(Machine, WhileTheStepIsSuspendedNothingIsRead) {
  Power();
  MachineSource source(tree_.roots(), 3);
  const Feed feeds[2];
  source.Take(0, std::vector<int>{feeds[0].descriptor(), feeds[1].descriptor()});
  constexpr char kPackage[] = "node_energy_joules_total{domain=\"package-0\",source=\"perf\"}";
  feeds[0].SayWords({uint64_t{100} << 32, 1, 1});
  source.SetPaused(true);
  source.Sample(kSecond);
  EXPECT_THAT(Value(source, kPackage), IsNan());
  source.SetPaused(false);
  source.Sample(2 * kSecond);
  EXPECT_DOUBLE_EQ(Value(source, kPackage), 100);
}

// A software event of the test itself in the place of the node's.
TEST_F(Machine, WhileTheStepIsSuspendedNothingIsCounted) {
  Power();
  MachineSource source(tree_.roots(), 3);
  perf_event_attr attributes{};
  attributes.size = sizeof(attributes);
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.config = PERF_COUNT_SW_TASK_CLOCK;
  attributes.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  attributes.exclude_kernel = 1;
  const auto fd = static_cast<int>(
      ::syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC));
  if (fd < 0) GTEST_SKIP() << "this machine has no perf events for the test";
  source.Take(0, std::vector<int>{fd, -ENODEV});
  const auto enabled = [fd] {
    uint64_t words[3] = {};
    EXPECT_EQ(::read(fd, words, sizeof(words)), static_cast<ssize_t>(sizeof(words)));
    return words[1];
  };
  source.SetPaused(true);
  const uint64_t before = enabled();
  EXPECT_EQ(enabled(), before);
  source.SetPaused(false);
  EXPECT_GT(enabled(), before);
}

TEST_F(Machine, APartOfASumIsMissingAndToldOnce) {
  Imc("uncore_imc_0");
  Imc("uncore_imc_1");
  MachineSource source(tree_.roots(), 3);
  const Feed feed;
  source.Take(0, std::vector<int>{feed.descriptor(), -EACCES, -EACCES, -EACCES});
  source.Take(4, std::vector<int>{-EACCES, -EACCES, -EACCES, -EACCES});
  feed.SayWords({1000, 1, 1});
  source.Sample(kSecond);
  for (const double value : source.values()) EXPECT_THAT(value, IsNan());
  EXPECT_THAT(source.TakeNotes(),
              ElementsAre(HasSubstr("uncore_imc_0 of processor 32 is not read: not permitted")));
}

TEST_F(Machine, ARefusalIsToldOnlyWhereThereIsSomethingToRefuse) {
  MachineSource nothing(tree_.roots(), 3);
  nothing.Refuse();
  EXPECT_THAT(nothing.TakeNotes(), IsEmpty());
  Power();
  MachineSource source(tree_.roots(), 3);
  source.Refuse();
  source.Refuse();
  EXPECT_THAT(source.TakeNotes(), ElementsAre(HasSubstr("the step shares the node")));
}

TEST_F(Machine, EnergyThatPowercapGivesIsNotCountedTwice) {
  Power();
  tree_.Write("sys/class/powercap/intel-rapl:0/energy_uj", "1\n");
  EXPECT_THAT(MachineSource(tree_.roots(), 3).events(), IsEmpty());
}

}  // namespace
}  // namespace sonde::collect::collect_machine_test
