// A stand-in for libnvidia-ml.so.1. With GPU_STANDIN_OLD, one of years ago: first versions of
// functions only, and no fields, energy, events or processes.
//
// For programs that cannot reach its state: with GPU_STANDIN_WATTS in the environment there is one
// GPU, which draws so much.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "daemon/collect/gpu/vendors/nvml_api.h"
#include "tests/unit/gpu_standin.h"

namespace nvml = sonde::collect::gpu::nvml;
using gpu_standin::Gpu;
using nvml::Handle;

namespace {

gpu_standin::State state;

size_t Index(Handle device) { return reinterpret_cast<size_t>(device) - 1; }
// The device's state, or in `result` why there is none.
Gpu* Ask(Handle device, gpu_standin::Function function, int& result) {
  result = state.Call(function);
  Gpu& gpu = state.gpus[Index(device) % gpu_standin::kGpus];
  if (gpu.lost != 0) result = gpu.lost;
  return result == 0 ? &gpu : nullptr;
}
template <typename To, typename From>
int Give(Handle device, gpu_standin::Function function, To* to, From Gpu::*from) {
  int result = 0;
  const Gpu* const gpu = Ask(device, function, result);
  if (gpu != nullptr) *to = static_cast<To>(gpu->*from);
  return result;
}
int Text(char* to, unsigned length, const char* text) {
  if (state.endless_texts) {
    std::memset(to, 'x', length);
  } else {
    std::snprintf(to, length, "%s", text);
  }
  return 0;
}

}  // namespace

extern "C" {
#define EXPORT __attribute__((visibility("default")))

EXPORT gpu_standin::State* gpu_standin_state() { return &state; }

EXPORT int nvmlShutdown() { return state.Call(gpu_standin::kShutdown); }
EXPORT const char* nvmlErrorString(int result) {
  static char text[32];
  std::snprintf(text, sizeof text, "nvml says %d", result);
  return text;
}
#ifdef GPU_STANDIN_OLD
EXPORT int nvmlInit() { return state.Call(gpu_standin::kInit); }
#define NVML(name) name
#else
EXPORT int nvmlInit_v2() {
  if (const char* const watts = std::getenv("GPU_STANDIN_WATTS")) {
    state.count = 1;
    Gpu& gpu = state.gpus[0];
    gpu.power = std::strtoull(watts, nullptr, 10) * 1000;
    gpu.busy = 90;
    gpu.memory_used = 1ULL << 30;
    gpu.memory_total = 80ULL << 30;
    gpu.temperature = 60;
    gpu.clock = 1700;
    gpu.throttle = nvml::kReasonSoftwarePowerCap;
  }
  return state.Call(gpu_standin::kInit);
}
#define NVML(name) name##_v2
#endif
EXPORT int NVML(nvmlDeviceGetCount)(unsigned* count) {
  *count = state.count;
  return state.Call(gpu_standin::kCount);
}
EXPORT int NVML(nvmlDeviceGetHandleByIndex)(unsigned index, Handle* device) {
  const int result = state.Call(gpu_standin::kHandle);
  if (result != 0 || index >= gpu_standin::kGpus) return nvml::kInvalidArgument;
  if (state.gpus[index].lost != 0) return state.gpus[index].lost;
  *device = reinterpret_cast<Handle>(static_cast<size_t>(index) + 1);
  return 0;
}
EXPORT int nvmlDeviceGetUUID(Handle device, char* uuid, unsigned length) {
  char text[32];
  std::snprintf(text, sizeof text, "GPU-%zu", Index(device));
  return Text(uuid, length, text);
}
EXPORT int nvmlDeviceGetName(Handle, char* name, unsigned length) {
  return Text(name, length, "Stand-in");
}
EXPORT int nvmlDeviceGetUtilizationRates(Handle device, nvml::Utilization* to) {
  int result = 0;
  const Gpu* const gpu = Ask(device, gpu_standin::kUtilization, result);
  if (gpu != nullptr) *to = {gpu->busy, gpu->memory_busy};
  return result;
}
EXPORT int nvmlDeviceGetMemoryInfo(Handle device, nvml::Memory* to) {
  int result = 0;
  const Gpu* const gpu = Ask(device, gpu_standin::kMemory, result);
  constexpr uint64_t kReserved = 1;
  if (gpu != nullptr) *to = {gpu->memory_total, 0, gpu->memory_used + kReserved};
  return result;
}
EXPORT int nvmlDeviceGetPowerUsage(Handle device, unsigned* to) {
  return Give(device, gpu_standin::kPower, to, &Gpu::power);
}
EXPORT int nvmlDeviceGetTemperature(Handle device, int, unsigned* to) {
  return Give(device, gpu_standin::kTemperature, to, &Gpu::temperature);
}
EXPORT int nvmlDeviceGetClockInfo(Handle device, int type, unsigned* to) {
  return Give(device, gpu_standin::kClock, to,
              type == nvml::kClockMemory ? &Gpu::memory_clock : &Gpu::clock);
}
EXPORT int nvmlDeviceGetCurrentClocksThrottleReasons(Handle device, unsigned long long* to) {
  return Give(device, gpu_standin::kThrottle, to, &Gpu::throttle);
}
EXPORT int nvmlDeviceGetTotalEccErrors(Handle device, int type, int counter,
                                       unsigned long long* to) {
  if (counter != nvml::kEccVolatile) return nvml::kInvalidArgument;
  return Give(device, gpu_standin::kEcc, to,
              type == nvml::kEccCorrected ? &Gpu::corrected : &Gpu::uncorrected);
}
EXPORT int nvmlDeviceGetPcieThroughput(Handle device, int counter, unsigned* to) {
  int result = 0;
  const Gpu* const gpu = Ask(device, gpu_standin::kPcieRate, result);
  if (gpu != nullptr) {
    const uint64_t bytes =
        counter == nvml::kPcieReceive ? gpu->pcie_received : gpu->pcie_transmitted;
    *to = static_cast<unsigned>(bytes / 1000);
  }
  return result;
}

#ifndef GPU_STANDIN_OLD
EXPORT int nvmlDeviceGetHandleByUUID(const char* uuid, Handle* device) {
  unsigned index = 0;
  if (std::sscanf(uuid, "GPU-%u", &index) != 1 && std::sscanf(uuid, "MIG-%u", &index) != 1) {
    return nvml::kNotFound;
  }
  // An instance has a handle of its own.
  const size_t of_instance = std::strncmp(uuid, "MIG-", 4) == 0 ? 100 : 0;
  *device = reinterpret_cast<Handle>(index + 1 + of_instance);
  return 0;
}
EXPORT int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(Handle instance, Handle* device) {
  *device = reinterpret_cast<Handle>(reinterpret_cast<size_t>(instance) - 100);
  return 0;
}
EXPORT int nvmlDeviceGetMemoryInfo_v2(Handle device, nvml::MemoryV2* to) {
  if (to->version != nvml::kMemoryV2) return nvml::kArgumentVersionMismatch;
  int result = 0;
  const Gpu* const gpu = Ask(device, gpu_standin::kMemory, result);
  if (gpu != nullptr) *to = {nvml::kMemoryV2, gpu->memory_total, 1, 0, gpu->memory_used};
  return result;
}
EXPORT int nvmlDeviceGetTotalEnergyConsumption(Handle device, unsigned long long* to) {
  if (std::getenv("GPU_STANDIN_WATTS") != nullptr) {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    const auto milliseconds = static_cast<unsigned long long>(now.tv_sec) * 1000 +
                              static_cast<unsigned>(now.tv_nsec) / 1000000;
    *to = state.gpus[0].power * milliseconds / 1000;
    return 0;
  }
  return Give(device, gpu_standin::kEnergy, to, &Gpu::energy);
}
EXPORT int nvmlDeviceGetEnforcedPowerLimit(Handle device, unsigned* to) {
  *to = 700'000;
  int result = 0;
  Ask(device, gpu_standin::kPowerLimit, result);
  return result;
}
EXPORT int nvmlDeviceGetFanSpeed(Handle device, unsigned* to) {
  *to = 30;
  int result = 0;
  Ask(device, gpu_standin::kFan, result);
  return result;
}
EXPORT int nvmlDeviceGetFieldValues(Handle device, int count, nvml::FieldValue* values) {
  int result = 0;
  const Gpu* const gpu = Ask(device, gpu_standin::kFields, result);
  if (gpu == nullptr) return result;
  for (int i = 0; i < count; ++i) {
    nvml::FieldValue& v = values[i];
    v.result = state.no_fields ? nvml::kNotSupported : nvml::kSuccess;
    v.type = nvml::kUnsignedLongLong;
    const auto link = [&](const uint64_t(&by_link)[2]) {
      if (v.scope == nvml::kAllLinks) return by_link[0] + by_link[1];
      return v.scope < 2 ? by_link[v.scope] : 0;
    };
    switch (v.field) {
      case nvml::kFieldMemoryTemperature:
        v.type = nvml::kUnsignedInt;
        v.value.as_unsigned = static_cast<unsigned>(gpu->temperature) + 10;
        break;
      case nvml::kFieldNvlinkCount:
        v.type = nvml::kUnsignedInt;
        v.value.as_unsigned = 2;
        break;
      case nvml::kFieldNvlinkReceived:
        v.value.as_unsigned_long_long = link(gpu->received);
        break;
      case nvml::kFieldNvlinkTransmitted:
        v.value.as_unsigned_long_long = link(gpu->transmitted);
        break;
      case nvml::kFieldPcieReceived:
        v.value.as_unsigned_long_long = gpu->pcie_received;
        break;
      case nvml::kFieldPcieTransmitted:
        v.value.as_unsigned_long_long = gpu->pcie_transmitted;
        break;
      default:
        v.result = nvml::kInvalidArgument;
    }
  }
  return 0;
}
EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(Handle device, unsigned* count,
                                                   nvml::ProcessInfo* infos) {
  int result = 0;
  const Gpu* const gpu = Ask(device, gpu_standin::kProcesses, result);
  if (gpu == nullptr) return result;
  for (size_t i = 0; i < 4 && i < *count; ++i) {
    infos[i] = {gpu->processes[i].pid, gpu->processes[i].memory, ~0u, ~0u};
  }
  *count = state.process_count;
  return 0;
}
EXPORT int nvmlEventSetCreate(Handle* set) {
  *set = reinterpret_cast<Handle>(&state);
  return 0;
}
EXPORT int nvmlEventSetFree(Handle) { return 0; }
EXPORT int nvmlDeviceRegisterEvents(Handle, unsigned long long, Handle) {
  return state.Call(gpu_standin::kEventRegister);
}
EXPORT int nvmlEventSetWait_v2(Handle, nvml::EventData* data, unsigned timeout) {
  if (timeout != 0) return nvml::kInvalidArgument;
  if (state.events == 0) return nvml::kTimeout;
  --state.events;
  data->device = reinterpret_cast<Handle>(static_cast<size_t>(state.event_gpu) + 1);
  data->type = nvml::kEventXid;
  data->data = state.event_data;
  return 0;
}
#endif
}
