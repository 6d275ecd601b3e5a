// AMD's and Intel's GPUs through stand-ins for their libraries, and nodes with GPUs of two vendors.
#include <gmock/gmock.h>
#include <unistd.h>

#include <cmath>

#include "daemon/collect/gpu/vendors/level_zero_api.h"
#include "daemon/collect/gpu/vendors/rocm_smi_api.h"
#include "tests/unit/collect_gpu_fixture.h"
#include "tests/unit/paths.h"

// Counted in collect_allocations.cc.
extern std::atomic<size_t> allocations;

namespace sonde::collect::collect_gpu_vendors_test {
namespace {

namespace rocm = gpu::rocm;
namespace ze = gpu::ze;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::IsNan;

class VendorGpus : public GpuFixture {
 protected:
  std::unique_ptr<GpuSource> OpenOne(Make make, const char* path, int level,
                                     const std::string& wanted = "") {
    std::vector<std::unique_ptr<gpu::Library>> libraries;
    libraries.push_back(Library(make, path, level));
    return GpuFixture::Open(std::move(libraries), level, wanted);
  }
  void AddTask(gpu_standin::State& lib, size_t gpu) {
    ASSERT_TRUE(tasks_.AddTask(3, getpid()).ok());
    tasks_.Sample(kSecond);
    lib.process_count = 2;
    lib.gpus[0].processes[0].pid = static_cast<uint32_t>(getpid());
    lib.gpus[gpu].processes[0] = {static_cast<uint32_t>(getpid()), 5000};
    lib.gpus[gpu].processes[1] = {1, 70};
  }
};

class RocmGpus : public VendorGpus {
 protected:
  RocmGpus() { Fill(lib_); }
  static void Fill(gpu_standin::State& lib) {
    lib.count = 2;
    lib.gpus[0].place = 0xc1;
    lib.gpus[1].place = 0x41;  // first on the bus
    for (uint32_t i = 0; i < 2; ++i) {
      gpu_standin::Gpu& gpu = lib.gpus[i];
      gpu.busy = 70 + i;
      gpu.memory_busy = 30;
      gpu.memory_used = 4096;
      gpu.memory_total = 1ULL << 36;
      gpu.power = 305'000'000;
      gpu.energy = 1'000'000;
      gpu.temperature = 47'000;
      gpu.clock = 1700;
      gpu.memory_clock = 1600;
    }
  }
  std::unique_ptr<GpuSource> Open(int level = 3, const std::string& wanted = "") {
    return OpenOne(gpu::MakeRocmSmi, kStandInRocmSmi, level, wanted);
  }
  gpu_standin::State& lib_ = *Reset(kStandInRocmSmi);
};

TEST_F(RocmGpus, ValuesAreInBaseUnits) {
  lib_.gpus[1].throttle = uint64_t{1} << 36 | 1;
  const auto source = Open(4);
  EXPECT_DOUBLE_EQ(Value(*source, "gpu_utilization_ratio{gpu=\"0\"}"), 0.71) << "by the bus";
  EXPECT_DOUBLE_EQ(Value(*source, "gpu_utilization_ratio{gpu=\"1\"}"), 0.70);
  EXPECT_EQ(Value(*source, "gpu_memory_used_bytes{gpu=\"0\"}"), 4096);
  EXPECT_EQ(Value(*source, "gpu_power_watts{gpu=\"0\"}"), 305);
  EXPECT_EQ(Value(*source, "gpu_power_limit_watts{gpu=\"0\"}"), 560);
  EXPECT_FALSE(Has(*source, "gpu_temperature_celsius{gpu=\"0\",sensor=\"gpu\"}"));
  EXPECT_EQ(Value(*source, "gpu_temperature_celsius{gpu=\"0\",sensor=\"hotspot\"}"), 47);
  EXPECT_EQ(Value(*source, "gpu_clock_hertz{clock=\"compute\",gpu=\"0\"}"), 1.7e9);
  EXPECT_EQ(Value(*source, "gpu_clock_hertz{clock=\"memory\",gpu=\"0\"}"), 1.6e9);
  EXPECT_EQ(Value(*source, "gpu_throttled{gpu=\"0\",reason=\"power\"}"), 1);
  EXPECT_EQ(Value(*source, "gpu_throttled{gpu=\"0\",reason=\"thermal\"}"), 1);
  EXPECT_EQ(Value(*source, "gpu_throttled{gpu=\"0\",reason=\"current\"}"), 0);
  EXPECT_EQ(Value(*source, "gpu_throttled{gpu=\"1\",reason=\"power\"}"), 0);
  EXPECT_DOUBLE_EQ(Value(*source, "gpu_fan_speed_ratio{gpu=\"1\"}"), 0.2);
  EXPECT_THAT(source->TakeNotes(), IsEmpty());
}

TEST_F(RocmGpus, CountersCount) {
  const auto source = Open(4);
  lib_.gpus[0].energy += 1'000'000;  // of 15.25 uJ
  lib_.gpus[0].corrected = 2;        // in each of two blocks
  lib_.gpus[0].received[1] = 3;
  lib_.gpus[0].transmitted[0] = 4;
  Sample(*source);
  EXPECT_NEAR(Value(*source, "gpu_energy_joules_total{gpu=\"1\"}"), 15.25, 1e-9);
  EXPECT_EQ(Value(*source, "gpu_ecc_errors_total{gpu=\"1\",type=\"corrected\"}"), 2 * (1 + 4));
  EXPECT_EQ(Value(*source, "gpu_link_received_bytes_total{gpu=\"1\"}"), 3000);
  EXPECT_EQ(Value(*source, "gpu_single_link_transmitted_bytes_total{gpu=\"1\",link=\"0\"}"), 4000);
  EXPECT_FALSE(Has(*source, "gpu_single_link_received_bytes_total{gpu=\"1\",link=\"2\"}"));
}

TEST_F(RocmGpus, DevicesAreChosenByBusOrderOrUniqueId) {
  const auto second = Open(3, "1");
  EXPECT_FALSE(Has(*second, "gpu_power_watts{gpu=\"0\"}"));
  EXPECT_DOUBLE_EQ(Value(*second, "gpu_utilization_ratio{gpu=\"1\"}"), 0.70);
  const auto named = Open(3, "GPU-000000000000abc1");
  EXPECT_DOUBLE_EQ(Value(*named, "gpu_utilization_ratio{gpu=\"0\"}"), 0.71);
  EXPECT_FALSE(Has(*named, "gpu_power_watts{gpu=\"1\"}"));
}

TEST_F(RocmGpus, AnOldLibraryGivesWhatItHas) {
  gpu_standin::State& old = *Reset(kStandInRocmSmiOld);
  Fill(old);
  const auto source = OpenOne(gpu::MakeRocmSmi, kStandInRocmSmiOld, 4);
  EXPECT_EQ(Value(*source, "gpu_power_watts{gpu=\"0\"}"), 305);
  EXPECT_EQ(Value(*source, "gpu_clock_hertz{clock=\"compute\",gpu=\"0\"}"), 1.7e9);
  EXPECT_FALSE(Has(*source, "gpu_throttled{gpu=\"0\",reason=\"power\"}"));
  EXPECT_FALSE(Has(*source, "gpu_link_received_bytes_total{gpu=\"0\"}"));
}

TEST_F(RocmGpus, OneFunctionThatFailsIsNoLossAndAllAre) {
  const auto source = Open();
  lib_.results[gpu_standin::kPower] = 16;
  Sample(*source);
  EXPECT_THAT(Value(*source, "gpu_power_watts{gpu=\"0\"}"), IsNan());
  EXPECT_DOUBLE_EQ(Value(*source, "gpu_utilization_ratio{gpu=\"0\"}"), 0.71);
  EXPECT_THAT(source->TakeNotes(), IsEmpty());
  lib_.results[gpu_standin::kPower] = 0;
  lib_.gpus[1].lost = 16;
  for (int i = 0; i < 10; ++i) Sample(*source);
  EXPECT_THAT(Value(*source, "gpu_utilization_ratio{gpu=\"0\"}"), IsNan());
  EXPECT_DOUBLE_EQ(Value(*source, "gpu_utilization_ratio{gpu=\"1\"}"), 0.70);
  EXPECT_THAT(source->TakeNotes(), ElementsAre(HasSubstr("GPU 0 does not answer: rsmi says 16")));
  lib_.gpus[1].lost = 0;
  for (int i = 0; i < 10; ++i) Sample(*source);
  EXPECT_EQ(Value(*source, "gpu_power_watts{gpu=\"0\"}"), 305);
  EXPECT_THAT(source->TakeNotes(), ElementsAre(HasSubstr("GPU 0 answers again")));
}

TEST_F(RocmGpus, MemoryOfTasksIsThatOfTheirProcesses) {
  AddTask(lib_, 0);
  const auto source = Open(4);
  EXPECT_EQ(Value(*source, "gpu_task_memory_bytes{gpu=\"1\",task=\"3\"}"), 5000);
  EXPECT_FALSE(Has(*source, "gpu_task_memory_bytes{gpu=\"0\",task=\"3\"}"));
}

TEST_F(RocmGpus, AWarmTickAllocatesNothing) {
  AddTask(lib_, 0);
  const auto source = Open(4);
  for (int i = 0; i < 3; ++i) Sample(*source);
  const size_t before = allocations;
  for (int i = 0; i < 100; ++i) Sample(*source);
  EXPECT_EQ(allocations, before);
}

TEST_F(RocmGpus, NoDriverIsNoNews) {
  lib_.results[gpu_standin::kInit] = rocm::kInitError;
  EXPECT_THAT(Open()->TakeNotes(), IsEmpty());
}

class IntelGpus : public VendorGpus {
 protected:
  IntelGpus() { Fill(lib_); }
  static void Fill(gpu_standin::State& lib) {
    lib.count = 2;
    lib.gpus[0].place = 0xc1;
    lib.gpus[1].place = 0x41;  // first on the bus
    for (uint32_t i = 0; i < 2; ++i) {
      gpu_standin::Gpu& gpu = lib.gpus[i];
      gpu.memory_used = 1000;
      gpu.memory_total = 4000;
      gpu.energy = 5'000'000;
      gpu.energy_time = 1'000'000;
      gpu.active = 100;
      gpu.temperature = 40 + i;
      gpu.clock = 1550;
    }
  }
  std::unique_ptr<GpuSource> Open(int level = 3, const std::string& wanted = "") {
    return OpenOne(gpu::MakeLevelZero, kStandInLevelZero, level, wanted);
  }
  gpu_standin::State& lib_ = *Reset(kStandInLevelZero);
};

TEST_F(IntelGpus, ValuesAreInBaseUnits) {
  lib_.gpus[1].throttle = 0x8 | 0x1;
  const auto source = Open(4);
  EXPECT_EQ(Value(*source, "gpu_memory_used_bytes{gpu=\"0\"}"), 2000) << "two modules";
  EXPECT_EQ(Value(*source, "gpu_memory_total_bytes{gpu=\"0\"}"), 8000);
  EXPECT_EQ(Value(*source, "gpu_temperature_celsius{gpu=\"0\",sensor=\"gpu\"}"), 43);
  EXPECT_EQ(Value(*source, "gpu_temperature_celsius{gpu=\"1\",sensor=\"gpu\"}"), 42);
  EXPECT_EQ(Value(*source, "gpu_temperature_celsius{gpu=\"1\",sensor=\"memory\"}"), 43);
  EXPECT_EQ(Value(*source, "gpu_clock_hertz{clock=\"compute\",gpu=\"0\"}"), 1.55e9);
  EXPECT_FALSE(Has(*source, "gpu_clock_hertz{clock=\"memory\",gpu=\"0\"}"));
  EXPECT_EQ(Value(*source, "gpu_throttled{gpu=\"0\",reason=\"power\"}"), 1);
  EXPECT_EQ(Value(*source, "gpu_throttled{gpu=\"0\",reason=\"thermal\"}"), 1);
  EXPECT_EQ(Value(*source, "gpu_throttled{gpu=\"1\",reason=\"thermal\"}"), 0);
  EXPECT_EQ(Value(*source, "gpu_throttled{gpu=\"0\",reason=\"current\"}"), 0);
  EXPECT_THAT(source->TakeNotes(), IsEmpty());
}

TEST_F(IntelGpus, PowerAndLoadAreRisesOfCounters) {
  const auto source = Open();
  EXPECT_FALSE(Has(*source, "gpu_power_watts{gpu=\"0\"}"));
  lib_.gpus[1].energy += 300'000'000;
  lib_.gpus[1].energy_time += 1'500'000;
  lib_.gpus[1].active += 1'200'000;
  lib_.gpus[1].pcie_received = 77;
  lib_.gpus[1].received[0] = 5;
  lib_.gpus[1].received[1] = 6;
  lib_.gpus[1].corrected = 3;
  Sample(*source);
  EXPECT_EQ(Value(*source, "gpu_power_watts{gpu=\"0\"}"), 200);
  EXPECT_DOUBLE_EQ(Value(*source, "gpu_utilization_ratio{gpu=\"0\"}"), 0.4) << "of two engines";
  EXPECT_EQ(Value(*source, "gpu_energy_joules_total{gpu=\"0\"}"), 300);
  EXPECT_EQ(Value(*source, "gpu_pcie_received_bytes_total{gpu=\"0\"}"), 77);
  EXPECT_EQ(Value(*source, "gpu_link_received_bytes_total{gpu=\"0\"}"), 11);
  EXPECT_EQ(Value(*source, "gpu_ecc_errors_total{gpu=\"0\",type=\"corrected\"}"), 6);
  EXPECT_EQ(Value(*source, "gpu_ecc_errors_total{gpu=\"0\",type=\"uncorrected\"}"), 0);
  lib_.gpus[1].energy = 0;  // a reset
  lib_.gpus[1].energy_time = 10;
  lib_.gpus[1].active = 0;
  Sample(*source);
  EXPECT_THAT(Value(*source, "gpu_power_watts{gpu=\"0\"}"), IsNan());
  EXPECT_THAT(Value(*source, "gpu_utilization_ratio{gpu=\"0\"}"), IsNan());
  EXPECT_EQ(Value(*source, "gpu_energy_joules_total{gpu=\"0\"}"), 300);
}

TEST_F(IntelGpus, OthersDevicesAreLeftToOthers) {
  lib_.count = 4;
  const auto source = Open();
  EXPECT_TRUE(Has(*source, "gpu_memory_used_bytes{gpu=\"2\"}"));
  EXPECT_FALSE(Has(*source, "gpu_memory_used_bytes{gpu=\"3\"}"));
  EXPECT_FALSE(Has(*Open(3, "0"), "gpu_memory_used_bytes{gpu=\"2\"}"));
}

TEST_F(IntelGpus, ALoaderFromBeforeZesInitIsUsedTheOldWay) {
  gpu_standin::State& old = *Reset(kStandInLevelZeroOld);
  Fill(old);
  const auto source = OpenOne(gpu::MakeLevelZero, kStandInLevelZeroOld, 3);
  EXPECT_EQ(Value(*source, "gpu_memory_used_bytes{gpu=\"0\"}"), 2000);
}

TEST_F(IntelGpus, ADeviceThatIsLostIsMissingUntilItIsBack) {
  const auto source = Open();
  lib_.gpus[0].lost = ze::kDeviceLost;
  for (int i = 0; i < 5; ++i) Sample(*source);
  EXPECT_THAT(Value(*source, "gpu_memory_used_bytes{gpu=\"1\"}"), IsNan());
  EXPECT_EQ(Value(*source, "gpu_memory_used_bytes{gpu=\"0\"}"), 2000);
  EXPECT_THAT(source->TakeNotes(),
              ElementsAre(HasSubstr("GPU 1 does not answer: the device is lost")));
  lib_.gpus[0].lost = 0;
  for (int i = 0; i < 5; ++i) Sample(*source);
  EXPECT_EQ(Value(*source, "gpu_memory_used_bytes{gpu=\"1\"}"), 2000);
}

TEST_F(IntelGpus, WhatUsersMayNotReadIsNotAskedAgain) {
  AddTask(lib_, 0);
  lib_.results[gpu_standin::kEcc] = ze::kPermissions;
  lib_.results[gpu_standin::kEnergy] = static_cast<int>(ze::kUnsupportedFeature);
  const auto source = Open(4);
  for (int i = 0; i < 20; ++i) Sample(*source);
  EXPECT_EQ(lib_.calls[gpu_standin::kEcc], 2);
  EXPECT_EQ(lib_.calls[gpu_standin::kEnergy], 2);
  EXPECT_EQ(Value(*source, "gpu_task_memory_bytes{gpu=\"1\",task=\"3\"}"), 5000);
}

TEST_F(IntelGpus, AWarmTickAllocatesNothing) {
  AddTask(lib_, 0);
  const auto source = Open(4);
  for (int i = 0; i < 3; ++i) Sample(*source);
  const size_t before = allocations;
  for (int i = 0; i < 100; ++i) Sample(*source);
  EXPECT_EQ(allocations, before);
}

TEST_F(VendorGpus, ASecondVendorsDevicesAreNamedAfterIt) {
  gpu_standin::State& nvml = *Reset(kStandInNvml);
  gpu_standin::State& amd = *Reset(kStandInRocmSmi);
  nvml.count = amd.count = 1;
  nvml.gpus[0].power = 100'000;
  amd.gpus[0].power = 50'000'000;
  const auto open = [&](const std::string& wanted) {
    std::vector<std::unique_ptr<gpu::Library>> libraries;
    libraries.push_back(Library(gpu::MakeNvml, kStandInNvml, 3));
    libraries.push_back(Library(gpu::MakeRocmSmi, kStandInRocmSmi, 3));
    return GpuFixture::Open(std::move(libraries), 3, wanted);
  };
  const auto all = open("");
  EXPECT_EQ(Value(*all, "gpu_power_watts{gpu=\"0\"}"), 100);
  EXPECT_EQ(Value(*all, "gpu_power_watts{gpu=\"AMD0\"}"), 50);
  EXPECT_FALSE(Has(*open("0"), "gpu_power_watts{gpu=\"AMD0\"}"));
}

}  // namespace
}  // namespace sonde::collect::collect_gpu_vendors_test
