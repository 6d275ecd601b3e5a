// A stand-in for librocm_smi64. With GPU_STANDIN_OLD, one of ROCm 5: a shorter table of metrics, no
// rsmi_dev_power_get, no list of processes by device.
#include <cstdio>
#include <cstring>

#include "daemon/collect/gpu/vendors/rocm_smi_api.h"
#include "tests/unit/gpu_standin.h"

namespace rocm = sonde::collect::gpu::rocm;
using gpu_standin::Gpu;

namespace {

gpu_standin::State state;

// The device's state, or in `result` why there is none.
Gpu* Ask(uint32_t device, gpu_standin::Function function, uint32_t& result) {
  result = static_cast<uint32_t>(state.Call(function));
  Gpu& gpu = state.gpus[device % gpu_standin::kGpus];
  if (gpu.lost != 0) result = static_cast<uint32_t>(gpu.lost);
  return result == 0 ? &gpu : nullptr;
}
template <typename To, typename From>
uint32_t Give(uint32_t device, gpu_standin::Function function, To* to, From Gpu::*from) {
  uint32_t result = 0;
  const Gpu* const gpu = Ask(device, function, result);
  if (gpu != nullptr) *to = static_cast<To>(gpu->*from);
  return result;
}

}  // namespace

extern "C" {
#define EXPORT __attribute__((visibility("default")))

EXPORT gpu_standin::State* gpu_standin_state() { return &state; }

EXPORT uint32_t rsmi_init(uint64_t flags) {
  if (flags != rocm::kInitThreadOnlyMutex) return rocm::kInvalidArguments;
  return static_cast<uint32_t>(state.Call(gpu_standin::kInit));
}
EXPORT uint32_t rsmi_shut_down() { return 0; }
EXPORT uint32_t rsmi_status_string(uint32_t result, const char** text) {
  static char buffer[32];
  std::snprintf(buffer, sizeof buffer, "rsmi says %u", result);
  *text = buffer;
  return 0;
}
EXPORT uint32_t rsmi_num_monitor_devices(uint32_t* count) {
  *count = state.count;
  return 0;
}
EXPORT uint32_t rsmi_dev_pci_id_get(uint32_t device, uint64_t* bdf) {
  *bdf = static_cast<uint64_t>(state.gpus[device % gpu_standin::kGpus].place) << 8;
  return 0;
}
EXPORT uint32_t rsmi_dev_unique_id_get(uint32_t device, uint64_t* id) {
  *id = 0xabc0 + device;
  return 0;
}
EXPORT uint32_t rsmi_dev_name_get(uint32_t, char* name, size_t length) {
  std::memset(name, 'x', length);
  return 0;
}
EXPORT uint32_t rsmi_dev_busy_percent_get(uint32_t device, uint32_t* to) {
  return Give(device, gpu_standin::kUtilization, to, &Gpu::busy);
}
EXPORT uint32_t rsmi_dev_memory_busy_percent_get(uint32_t device, uint32_t* to) {
  return Give(device, gpu_standin::kUtilization, to, &Gpu::memory_busy);
}
EXPORT uint32_t rsmi_dev_memory_usage_get(uint32_t device, uint32_t, uint64_t* to) {
  return Give(device, gpu_standin::kMemory, to, &Gpu::memory_used);
}
EXPORT uint32_t rsmi_dev_memory_total_get(uint32_t device, uint32_t, uint64_t* to) {
  return Give(device, gpu_standin::kMemory, to, &Gpu::memory_total);
}
EXPORT uint32_t rsmi_dev_power_cap_get(uint32_t device, uint32_t, uint64_t* to) {
  *to = 560'000'000;
  uint32_t result = 0;
  Ask(device, gpu_standin::kPowerLimit, result);
  return result;
}
EXPORT uint32_t rsmi_dev_energy_count_get(uint32_t device, uint64_t* to, float* resolution,
                                          uint64_t* time) {
  *resolution = 15.25F;
  *time = 0;
  return Give(device, gpu_standin::kEnergy, to, &Gpu::energy);
}
EXPORT uint32_t rsmi_dev_temp_metric_get(uint32_t device, uint32_t sensor, int, int64_t* to) {
  // This one has no sensor at its edge.
  if (sensor == rocm::kTemperatureEdge) return rocm::kNotSupported;
  return Give(device, gpu_standin::kTemperature, to, &Gpu::temperature);
}
EXPORT uint32_t rsmi_dev_fan_speed_get(uint32_t device, uint32_t, int64_t* to) {
  *to = 51;
  uint32_t result = 0;
  Ask(device, gpu_standin::kFan, result);
  return result;
}
EXPORT uint32_t rsmi_dev_ecc_enabled_get(uint32_t, uint64_t* blocks) {
  *blocks = 0x1 | 0x4;
  return 0;
}
EXPORT uint32_t rsmi_dev_ecc_count_get(uint32_t device, uint64_t block, rocm::ErrorCount* to) {
  uint32_t result = 0;
  const Gpu* const gpu = Ask(device, gpu_standin::kEcc, result);
  if (gpu != nullptr) *to = {gpu->corrected * block, gpu->uncorrected * block};
  return result;
}
EXPORT uint32_t rsmi_dev_gpu_metrics_info_get(uint32_t device, rocm::MetricsBuffer* to) {
  uint32_t result = 0;
  const Gpu* const gpu = Ask(device, gpu_standin::kClock, result);
  if (gpu == nullptr) return result;
  rocm::Metrics metrics;
  std::memset(&metrics, 0xff, sizeof metrics);
  metrics.current_gfxclk = static_cast<uint16_t>(gpu->clock);
  metrics.current_uclk = static_cast<uint16_t>(gpu->memory_clock);
  metrics.indep_throttle_status = gpu->throttle;
  for (size_t i = 0; i < 2; ++i) {
    metrics.xgmi_read_data_acc[i] = gpu->received[i];
    metrics.xgmi_write_data_acc[i] = gpu->transmitted[i];
  }
#ifdef GPU_STANDIN_OLD
  std::memcpy(to, &metrics, offsetof(rocm::Metrics, indep_throttle_status));
#else
  std::memcpy(to, &metrics, sizeof metrics);
#endif
  return 0;
}
#ifdef GPU_STANDIN_OLD
EXPORT uint32_t rsmi_dev_power_ave_get(uint32_t device, uint32_t, uint64_t* to) {
  return Give(device, gpu_standin::kPower, to, &Gpu::power);
}
#else
EXPORT uint32_t rsmi_dev_power_get(uint32_t device, uint64_t* to, int* type) {
  *type = 1;
  return Give(device, gpu_standin::kPower, to, &Gpu::power);
}
EXPORT uint32_t rsmi_compute_process_info_get(rocm::ListedProcess* processes, uint32_t* count) {
  const int result = state.Call(gpu_standin::kProcesses);
  if (result != 0) return static_cast<uint32_t>(result);
  for (size_t i = 0; i < 4 && i < *count; ++i) {
    processes[i] = {state.gpus[0].processes[i].pid, 0, 0, 0, 0};
  }
  *count = state.process_count;
  return 0;
}
EXPORT uint32_t rsmi_compute_process_info_by_device_get(uint32_t pid, uint32_t device,
                                                        rocm::ProcessInfo* to) {
  for (const gpu_standin::Process& process : state.gpus[device].processes) {
    if (process.pid != pid || process.memory == 0) continue;
    to->vram_usage = process.memory;
    return 0;
  }
  return rocm::kNotFound;
}
#endif
}
