// NVIDIA's GPUs through a stand-in for NVML, and what the source makes of any library's readings.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>

#include "daemon/collect/gpu/vendors/nvml_api.h"
#include "daemon/collect/registry.h"
#include "tests/unit/collect_gpu_fixture.h"
#include "tests/unit/paths.h"

// Counted in collect_allocations.cc.
extern std::atomic<size_t> allocations;

namespace sonde::collect::collect_gpu_nvml_test {
namespace {

namespace nvml = gpu::nvml;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::IsNan;

class NvmlGpus : public GpuFixture {
 protected:
  NvmlGpus() {
    lib_.count = 2;
    for (size_t i = 0; i < 2; ++i) {
      gpu_standin::Gpu& gpu = lib_.gpus[i];
      gpu.busy = 50;
      gpu.memory_busy = 20;
      gpu.memory_used = 3ULL << 30;
      gpu.memory_total = 80ULL << 30;
      gpu.power = 250'000;
      gpu.energy = 9'000'000'000;
      gpu.temperature = 41;
      gpu.clock = 1980;
      gpu.memory_clock = 2619;
    }
  }
  std::unique_ptr<GpuSource> Open(int level = 3, const std::string& wanted = "",
                                  const char* path = kStandInNvml) {
    std::vector<std::unique_ptr<gpu::Library>> libraries;
    libraries.push_back(Library(gpu::MakeNvml, path, level));
    return GpuFixture::Open(std::move(libraries), level, wanted);
  }

  gpu_standin::State& lib_ = *Reset(kStandInNvml);
};

TEST_F(NvmlGpus, ValuesAreInBaseUnits) {
  lib_.gpus[1].throttle = nvml::kReasonSoftwarePowerCap | nvml::kReasonHardwareThermal;
  const auto source = Open(4);
  EXPECT_EQ(Value(*source, "gpu_utilization_ratio{gpu=\"0\"}"), 0.5);
  EXPECT_EQ(Value(*source, "gpu_memory_utilization_ratio{gpu=\"0\"}"), 0.2);
  EXPECT_EQ(Value(*source, "gpu_memory_used_bytes{gpu=\"0\"}"), 3.0 * (1 << 30));
  EXPECT_EQ(Value(*source, "gpu_memory_total_bytes{gpu=\"1\"}"), 80.0 * (1 << 30));
  EXPECT_EQ(Value(*source, "gpu_power_watts{gpu=\"0\"}"), 250);
  EXPECT_EQ(Value(*source, "gpu_power_limit_watts{gpu=\"0\"}"), 700);
  EXPECT_EQ(Value(*source, "gpu_temperature_celsius{gpu=\"0\",sensor=\"gpu\"}"), 41);
  EXPECT_EQ(Value(*source, "gpu_temperature_celsius{gpu=\"0\",sensor=\"memory\"}"), 51);
  EXPECT_EQ(Value(*source, "gpu_clock_hertz{clock=\"compute\",gpu=\"0\"}"), 1.98e9);
  EXPECT_EQ(Value(*source, "gpu_clock_hertz{clock=\"memory\",gpu=\"0\"}"), 2.619e9);
  EXPECT_DOUBLE_EQ(Value(*source, "gpu_fan_speed_ratio{gpu=\"0\"}"), 0.3);
  EXPECT_EQ(Value(*source, "gpu_throttled{gpu=\"0\",reason=\"power\"}"), 0);
  EXPECT_EQ(Value(*source, "gpu_throttled{gpu=\"1\",reason=\"power\"}"), 1);
  EXPECT_EQ(Value(*source, "gpu_throttled{gpu=\"1\",reason=\"thermal\"}"), 1);
  EXPECT_EQ(Value(*source, "gpu_throttled{gpu=\"1\",reason=\"hardware\"}"), 0);
  EXPECT_THAT(source->TakeNotes(), IsEmpty());
}

TEST_F(NvmlGpus, CountersCountFromTheFirstReading) {
  const auto source = Open(4);
  EXPECT_EQ(Value(*source, "gpu_energy_joules_total{gpu=\"0\"}"), 0);
  lib_.gpus[0].energy += 250'500;  // mJ
  lib_.gpus[0].corrected = 7;
  lib_.gpus[0].pcie_received = 5000;
  lib_.gpus[0].received[0] = 10;  // KiB
  lib_.gpus[0].transmitted[1] = 30;
  Sample(*source);
  EXPECT_EQ(Value(*source, "gpu_energy_joules_total{gpu=\"0\"}"), 250.5);
  EXPECT_EQ(Value(*source, "gpu_energy_joules_total{gpu=\"1\"}"), 0);
  EXPECT_EQ(Value(*source, "gpu_ecc_errors_total{gpu=\"0\",type=\"corrected\"}"), 7);
  EXPECT_EQ(Value(*source, "gpu_ecc_errors_total{gpu=\"0\",type=\"uncorrected\"}"), 0);
  EXPECT_EQ(Value(*source, "gpu_pcie_received_bytes_total{gpu=\"0\"}"), 5000);
  EXPECT_EQ(Value(*source, "gpu_link_received_bytes_total{gpu=\"0\"}"), 10240);
  EXPECT_EQ(Value(*source, "gpu_link_transmitted_bytes_total{gpu=\"0\"}"), 30720);
  EXPECT_EQ(Value(*source, "gpu_single_link_transmitted_bytes_total{gpu=\"0\",link=\"1\"}"), 30720);
  EXPECT_EQ(Value(*source, "gpu_single_link_received_bytes_total{gpu=\"0\",link=\"1\"}"), 0);
  EXPECT_FALSE(Has(*source, "gpu_single_link_received_bytes_total{gpu=\"0\",link=\"2\"}"));
  EXPECT_FALSE(Has(*source, "gpu_pcie_receive_bytes_per_second{gpu=\"0\"}"));
}

TEST_F(NvmlGpus, ACounterThatIsSetBackWrapsOrJumpsGivesNoSpike) {
  constexpr const char* kEnergy = "gpu_energy_joules_total{gpu=\"0\"}";
  const auto source = Open();
  lib_.gpus[0].energy += 1'000'000;
  Sample(*source);
  EXPECT_EQ(Value(*source, kEnergy), 1000);
  lib_.gpus[0].energy = 5;
  Sample(*source);
  EXPECT_EQ(Value(*source, kEnergy), 1000);
  lib_.gpus[0].energy = 500'005;
  Sample(*source);
  EXPECT_EQ(Value(*source, kEnergy), 1500);
  lib_.gpus[0].energy = ~0ULL;
  Sample(*source);
  EXPECT_EQ(Value(*source, kEnergy), 1500);
  lib_.gpus[0].energy = 600'005;
  Sample(*source);
  lib_.gpus[0].energy = 700'005;
  Sample(*source);
  EXPECT_EQ(Value(*source, kEnergy), 1600);
}

TEST_F(NvmlGpus, EnergyIsSummedUpWhereNoCounterIs) {
  constexpr const char* kEnergy = "gpu_energy_joules_total{gpu=\"0\"}";
  lib_.results[gpu_standin::kEnergy] = nvml::kNotSupported;
  const auto source = Open();
  EXPECT_EQ(Value(*source, kEnergy), 0);
  lib_.gpus[0].power = 350'000;
  Sample(*source, 2 * kSecond);
  EXPECT_EQ(Value(*source, kEnergy), 600);
  lib_.results[gpu_standin::kPower] = 999;
  Sample(*source);
  EXPECT_THAT(Value(*source, kEnergy), IsNan());
  lib_.results[gpu_standin::kPower] = 0;
  Sample(*source, 10 * kSecond);  // nobody knows what it drew meanwhile
  Sample(*source);
  EXPECT_EQ(Value(*source, kEnergy), 950);
}

TEST_F(NvmlGpus, OnlyTheStepsOwnDevicesAreRead) {
  lib_.count = 4;
  const auto names = [&](const std::string& wanted) {
    const auto source = Open(3, wanted);
    std::string found;
    for (const Series& s : source->series()) {
      if (s.metric.name == "gpu_power_watts") found += *s.tags.Find("gpu") + " ";
    }
    return found;
  };
  EXPECT_EQ(names(""), "0 1 2 3 ");
  EXPECT_EQ(names("2"), "2 ");
  EXPECT_EQ(names("0,2-3"), "0 2 3 ");
  EXPECT_EQ(names("GPU-1"), "1 ");
  EXPECT_EQ(names("MIG-3"), "3 ");
  EXPECT_EQ(names("1,,x,9"), "1 ");
  EXPECT_EQ(names("NoDevFiles"), "");
  lib_.calls[gpu_standin::kPower] = 0;
  names("2");
  EXPECT_EQ(lib_.calls[gpu_standin::kPower], 1);
}

TEST_F(NvmlGpus, DevicesOfOthersAloneAreSaidSo) {
  const auto source = Open(3, "6,7");
  EXPECT_THAT(source->series(), IsEmpty());
  EXPECT_THAT(source->TakeNotes(),
              ElementsAre(HasSubstr("none of the 2 GPUs found on the node is one of the step's "
                                    "(6,7)")));
}

TEST_F(NvmlGpus, WhatIsNotSupportedIsNotAskedAgain) {
  lib_.results[gpu_standin::kFan] = nvml::kNotSupported;
  lib_.results[gpu_standin::kEcc] = nvml::kNoPermission;
  lib_.no_fields = true;
  const auto source = Open(4);
  for (int i = 0; i < 100; ++i) Sample(*source);
  EXPECT_EQ(lib_.calls[gpu_standin::kFan], 2);  // one for each device
  EXPECT_EQ(lib_.calls[gpu_standin::kEcc], 4);
  EXPECT_EQ(lib_.calls[gpu_standin::kFields], 2);
  EXPECT_EQ(lib_.calls[gpu_standin::kPower], 202);
  EXPECT_FALSE(Has(*source, "gpu_fan_speed_ratio{gpu=\"0\"}"));
  EXPECT_FALSE(Has(*source, "gpu_ecc_errors_total{gpu=\"0\",type=\"corrected\"}"));
  EXPECT_TRUE(Has(*source, "gpu_pcie_receive_bytes_per_second{gpu=\"0\"}")) << "instead of bytes";
  EXPECT_THAT(source->TakeNotes(), IsEmpty());
}

TEST_F(NvmlGpus, AFunctionThatFailsIsTriedAgainAfterGrowingPauses) {
  const auto source = Open();
  lib_.calls[gpu_standin::kPower] = 0;
  lib_.results[gpu_standin::kPower] = 999;
  for (int i = 0; i < 31; ++i) Sample(*source);
  EXPECT_THAT(Value(*source, "gpu_power_watts{gpu=\"0\"}"), IsNan());
  EXPECT_EQ(Value(*source, "gpu_utilization_ratio{gpu=\"0\"}"), 0.5);
  EXPECT_EQ(lib_.calls[gpu_standin::kPower], 2 * 5);  // after 0, 1, 3, 7 and 15 s
  lib_.results[gpu_standin::kPower] = 0;
  Sample(*source);
  EXPECT_EQ(Value(*source, "gpu_power_watts{gpu=\"0\"}"), 250);
}

TEST_F(NvmlGpus, AGpuThatIsLostIsMissingAndTheOthersAreNot) {
  const auto source = Open();
  lib_.gpus[1].lost = nvml::kGpuIsLost;
  for (int i = 0; i < 31; ++i) Sample(*source);
  for (size_t i = 0; i < source->series().size(); ++i) {
    const Series& s = source->series()[i];
    if (s.metric.name == "gpu_xid_errors_total") continue;
    EXPECT_EQ(std::isnan(source->values()[i]), *s.tags.Find("gpu") == "1") << s.metric.name;
  }
  EXPECT_THAT(source->TakeNotes(),
              ElementsAre("GPU 1 does not answer: nvml says 15; tried again at growing intervals"));
  EXPECT_EQ(lib_.calls[gpu_standin::kHandle], 2 + 4) << "again after 1, 3, 7 and 15 s";
  lib_.gpus[1].lost = 0;
  Sample(*source);
  EXPECT_EQ(Value(*source, "gpu_power_watts{gpu=\"1\"}"), 250);
  EXPECT_THAT(source->TakeNotes(), ElementsAre("GPU 1 answers again, after 31 s"));
}

TEST_F(NvmlGpus, ASlowFunctionIsCalledSeldom) {
  static SteppedClock* clock = nullptr;
  clock = &clock_;
  const auto source = Open(3, "0");
  lib_.calls[gpu_standin::kThrottle] = 0;
  lib_.on_call = [](gpu_standin::Function function) {
    if (function == gpu_standin::kThrottle) clock->Add(50 * kMillisecond);
  };
  for (int i = 0; i < 50; ++i) Sample(*source, 950 * kMillisecond);
  lib_.on_call = nullptr;
  EXPECT_LE(lib_.calls[gpu_standin::kThrottle], 11);  // 50 ms in 5 s
  EXPECT_GE(lib_.calls[gpu_standin::kThrottle], 8);
  EXPECT_EQ(Value(*source, "gpu_throttled{gpu=\"0\",reason=\"power\"}"), 0) << "the last value";
}

TEST_F(NvmlGpus, ShortPeriodsRepeatTheLastReading) {
  const auto source = Open(3, "0");
  lib_.calls[gpu_standin::kPower] = 0;
  lib_.gpus[0].power = 1000;
  for (int i = 0; i < 9; ++i) Sample(*source, 10 * kMillisecond);
  EXPECT_EQ(lib_.calls[gpu_standin::kPower], 0);
  EXPECT_EQ(Value(*source, "gpu_power_watts{gpu=\"0\"}"), 250);
  Sample(*source, 10 * kMillisecond);
  EXPECT_EQ(Value(*source, "gpu_power_watts{gpu=\"0\"}"), 1);
}

TEST_F(NvmlGpus, AnOldLibraryGivesWhatItHas) {
  gpu_standin::State& old = *Reset(kStandInNvmlOld);
  old.count = 1;
  old.gpus[0] = lib_.gpus[0];
  const auto source = Open(4, "", kStandInNvmlOld);
  EXPECT_EQ(Value(*source, "gpu_power_watts{gpu=\"0\"}"), 250);
  EXPECT_EQ(Value(*source, "gpu_memory_used_bytes{gpu=\"0\"}"), 3.0 * (1 << 30) + 1);
  EXPECT_EQ(Value(*source, "gpu_energy_joules_total{gpu=\"0\"}"), 0);
  EXPECT_FALSE(Has(*source, "gpu_xid_errors_total{gpu=\"0\"}"));
  EXPECT_FALSE(Has(*source, "gpu_link_received_bytes_total{gpu=\"0\"}"));
  EXPECT_THAT(source->TakeNotes(), IsEmpty());
}

TEST_F(NvmlGpus, ALibraryThatLiesIsBelievedWithinBounds) {
  lib_.count = 4'000'000'000;
  lib_.endless_texts = true;
  lib_.process_count = 4'000'000'000;
  lib_.gpus[0].power = 0xffffffff;  // 4 MW
  lib_.gpus[0].temperature = 0xffffffff;
  lib_.gpus[0].busy = 0xffffffff;
  const auto source = Open(4);
  EXPECT_EQ(lib_.calls[gpu_standin::kHandle], 64);
  EXPECT_FALSE(Has(*source, "gpu_power_watts{gpu=\"0\"}"));
  EXPECT_FALSE(Has(*source, "gpu_temperature_celsius{gpu=\"0\",sensor=\"gpu\"}"));
  EXPECT_FALSE(Has(*source, "gpu_utilization_ratio{gpu=\"0\"}"));
  EXPECT_EQ(Value(*source, "gpu_power_watts{gpu=\"1\"}"), 250);
}

TEST_F(NvmlGpus, XidsAreCountedAndNamed) {
  const auto source = Open(4);
  EXPECT_EQ(Value(*source, "gpu_xid_errors_total{gpu=\"1\"}"), 0);
  lib_.events = 1;
  lib_.event_gpu = 1;
  lib_.event_data = 79;
  lib_.gpus[1].lost = nvml::kGpuIsLost;
  Sample(*source);
  EXPECT_EQ(Value(*source, "gpu_xid_errors_total{gpu=\"1\"}"), 1);
  EXPECT_EQ(Value(*source, "gpu_last_xid{gpu=\"1\"}"), 79);
  EXPECT_EQ(Value(*source, "gpu_xid_errors_total{gpu=\"0\"}"), 0);
  EXPECT_THAT(source->TakeNotes(), ElementsAre(HasSubstr("GPU 1 does not answer"),
                                               "GPU 1: XID 79: GPU has fallen off the bus"));
  lib_.events = 3;
  lib_.event_gpu = 0;
  lib_.event_data = 12345;
  Sample(*source);
  EXPECT_THAT(source->TakeNotes(), ElementsAre("GPU 0: XID 12345 (3 since the last look)"));
}

TEST_F(NvmlGpus, XidsThatNobodyMayHearOfAreNotZero) {
  lib_.results[gpu_standin::kEventRegister] = nvml::kNoPermission;
  EXPECT_FALSE(Has(*Open(4), "gpu_xid_errors_total{gpu=\"0\"}"));
}

TEST_F(NvmlGpus, MemoryOfTasksIsThatOfTheirProcesses) {
  ASSERT_TRUE(tasks_.AddTask(3, getpid()).ok());
  tasks_.Sample(kSecond);
  lib_.process_count = 3;
  lib_.gpus[1].processes[0] = {static_cast<uint32_t>(getpid()), 5000};
  lib_.gpus[1].processes[1] = {1, 70};                                   // another's
  lib_.gpus[1].processes[2] = {static_cast<uint32_t>(getpid()), ~0ULL};  // not known
  EXPECT_FALSE(Has(*Open(3), "gpu_task_memory_bytes{gpu=\"1\",task=\"3\"}"));
  const auto source = Open(4);
  EXPECT_EQ(Value(*source, "gpu_task_memory_bytes{gpu=\"1\",task=\"3\"}"), 5000);
  EXPECT_FALSE(Has(*source, "gpu_task_memory_bytes{gpu=\"0\",task=\"3\"}"));
  lib_.process_count = 0;
  Sample(*source);
  EXPECT_EQ(Value(*source, "gpu_task_memory_bytes{gpu=\"1\",task=\"3\"}"), 0);
  lib_.results[gpu_standin::kProcesses] = 999;
  Sample(*source);
  EXPECT_THAT(Value(*source, "gpu_task_memory_bytes{gpu=\"1\",task=\"3\"}"), IsNan());
}

TEST_F(NvmlGpus, ADriverThatIsNotReadyIsTriedAgain) {
  lib_.results[gpu_standin::kInit] = 18;  // library and driver do not match
  const auto source = Open();
  for (int i = 0; i < 5; ++i) Sample(*source);
  EXPECT_EQ(lib_.calls[gpu_standin::kInit], 3);
  EXPECT_THAT(source->series(), IsEmpty());
  EXPECT_THAT(source->TakeNotes(),
              ElementsAre("no metrics of NVIDIA GPUs: nvmlInit: nvml says 18; tried again at "
                          "growing intervals"));
  lib_.results[gpu_standin::kInit] = 0;
  for (int i = 0; i < 3; ++i) Sample(*source);
  EXPECT_EQ(Value(*source, "gpu_power_watts{gpu=\"0\"}"), 250);
}

TEST_F(NvmlGpus, ALibraryWithoutADriverOrADeviceIsNoNews) {
  lib_.results[gpu_standin::kInit] = nvml::kDriverNotLoaded;
  EXPECT_THAT(Open()->TakeNotes(), IsEmpty());
  lib_.results[gpu_standin::kInit] = 0;
  lib_.count = 0;
  const auto source = Open();
  EXPECT_THAT(source->TakeNotes(), IsEmpty());
  EXPECT_THAT(source->series(), IsEmpty());
}

TEST_F(NvmlGpus, AWarmTickAllocatesNothing) {
  ASSERT_TRUE(tasks_.AddTask(0, getpid()).ok());
  tasks_.Sample(kSecond);
  lib_.process_count = 2;
  lib_.gpus[0].processes[0] = {static_cast<uint32_t>(getpid()), 5000};
  lib_.results[gpu_standin::kFan] = 999;
  const auto source = Open(4);
  for (int i = 0; i < 3; ++i) Sample(*source);
  const uint32_t generation = source->generation();
  const size_t before = allocations;
  for (int i = 0; i < 200; ++i) Sample(*source);
  EXPECT_EQ(allocations, before);
  EXPECT_EQ(source->generation(), generation);
}

TEST_F(NvmlGpus, EveryMetricIsDeclaredAndOfTheLevel) {
  for (const int level : {3, 4}) {
    const auto source = Open(level);
    EXPECT_GT(source->series().size(), 20u);
    for (const Series& s : source->series()) {
      EXPECT_LE(s.metric.level, level);
      const auto& all = AllMetrics();
      EXPECT_TRUE(std::any_of(all.begin(), all.end(), [&](const MetricDecl& decl) {
        return Metric(decl) == s.metric;
      })) << s.metric.name;
    }
  }
}

// A driver that keeps its caller, until it is let go.
class Driver {
 public:
  void Enter() {
    std::unique_lock lock(mutex_);
    inside_ = true;
    changed_.notify_all();
    changed_.wait(lock, [&] { return !hangs_; });
    inside_ = false;
  }
  void Leave() {
    const std::lock_guard lock(mutex_);
    left_ = true;
    changed_.notify_all();
  }
  void Hang(bool hangs) {
    const std::lock_guard lock(mutex_);
    hangs_ = hangs;
    changed_.notify_all();
  }
  void AwaitCaller() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return inside_; });
  }
  void AwaitLeave() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return left_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool hangs_ = false;
  bool inside_ = false;
  bool left_ = false;
};

TEST_F(NvmlGpus, ADriverThatHangsHoldsNothingUp) {
  static Driver driver;
  constexpr const char* kPower = "gpu_power_watts{gpu=\"0\"}";
  lib_.on_call = [](gpu_standin::Function function) {
    if (function == gpu_standin::kPower) driver.Enter();
    if (function == gpu_standin::kShutdown) driver.Leave();
  };
  GpuOptions options;
  options.wanted = "0";
  options.libraries.push_back(Library(gpu::MakeNvml, kStandInNvml, 3));
  options.first_patience = 100 * kSecond;
  options.patience = kMillisecond;
  options.clock = &clock_;
  auto source = std::make_unique<GpuSource>(std::move(options), tasks_);
  source->Sample(0);
  EXPECT_EQ(Value(*source, kPower), 250);
  driver.Hang(true);
  Sample(*source);
  driver.AwaitCaller();
  for (int i = 0; i < 4; ++i) Sample(*source);
  EXPECT_EQ(Value(*source, kPower), 250);
  for (int i = 0; i < 3; ++i) Sample(*source);
  EXPECT_THAT(Value(*source, kPower), IsNan());
  EXPECT_THAT(source->TakeNotes(), ElementsAre(HasSubstr("GPUs have not answered for")));
  driver.Hang(false);
  while (std::isnan(Value(*source, kPower))) Sample(*source, kMillisecond);
  EXPECT_EQ(Value(*source, kPower), 250);
  EXPECT_THAT(source->TakeNotes(), ElementsAre("GPUs answer again"));
  // Nor does one that hangs hold up the end: what is inside it stays behind.
  driver.Hang(true);
  Sample(*source);
  driver.AwaitCaller();
  source.reset();
  EXPECT_EQ(lib_.calls[gpu_standin::kShutdown], 0);
  driver.Hang(false);
  driver.AwaitLeave();
}

// What is loaded, and what is said when it is not there.
class GpuNotes : public GpuFixture {
 protected:
  std::unique_ptr<GpuSource> OnNode() {
    GpuOptions options;
    options.roots = tree_.roots();
    options.first_patience = 100 * kSecond;
    options.clock = &clock_;
    auto source = std::make_unique<GpuSource>(std::move(options), tasks_);
    return source;
  }
  Tree tree_;
};

TEST_F(GpuNotes, NothingIsLoadedWhereThereIsNoDriver) {
  tree_.Write("sys/class/drm/renderD128/device/vendor", "0x1002\n");  // no driver for computing
  const auto source = OnNode();
  Sample(*source);
  EXPECT_THAT(source->TakeNotes(), IsEmpty());
  EXPECT_FALSE(source->loads());
}

TEST_F(GpuNotes, LibrariesAreLoadedWhereThereIsADriver) {
  for (const char* file : {"proc/driver/nvidia/version", "sys/class/kfd/kfd/topology/generation_id",
                           "sys/class/drm/renderD129/device/vendor"}) {
    tree_.Write(file, "0x8086\n");
    EXPECT_TRUE(OnNode()->loads()) << file;
    tree_.Remove("proc");
    tree_.Remove("sys");
  }
}

TEST_F(GpuNotes, LibrariesThatAreExpectedAndNotInstalledAreNamedOnce) {
  const auto notes = [&](const std::string& wanted, std::initializer_list<Make> makes) {
    std::vector<std::unique_ptr<gpu::Library>> libraries;
    for (const Make make : makes) libraries.push_back(Library(make, "/nonexistent/lib.so", 3));
    const auto source = Open(std::move(libraries), 3, wanted);
    for (int i = 0; i < 10; ++i) Sample(*source);
    return source->TakeNotes();
  };
  EXPECT_THAT(notes("", {gpu::MakeNvml}),
              ElementsAre("no GPU metrics: the node has GPUs of NVIDIA, but this is not installed "
                          "on the node: libnvidia-ml.so.1"));
  EXPECT_THAT(notes("0,1", {gpu::MakeNvml, gpu::MakeRocmSmi, gpu::MakeLevelZero}),
              ElementsAre("no GPU metrics: the step has GPUs (0,1), but these are not installed on "
                          "the node: libnvidia-ml.so.1, librocm_smi64.so, libze_loader.so.1"));
}

}  // namespace
}  // namespace sonde::collect::collect_gpu_nvml_test
