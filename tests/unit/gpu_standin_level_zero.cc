// A stand-in for libze_loader.so.1. With GPU_STANDIN_OLD, one from before zesInit.
//
// A device's handle is 100 and its number; those of its parts are 1000 times that, plus a number.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "daemon/collect/gpu/vendors/level_zero_api.h"
#include "tests/unit/gpu_standin.h"

namespace ze = sonde::collect::gpu::ze;
using gpu_standin::Gpu;
using ze::Handle;

namespace {

gpu_standin::State state;

Handle Make(size_t number) { return reinterpret_cast<Handle>(number); }
size_t NumberOf(Handle handle) { return reinterpret_cast<size_t>(handle); }
size_t PartOf(Handle handle) { return NumberOf(handle) % 1000; }
Gpu& GpuOf(Handle handle) {
  const size_t number = NumberOf(handle);
  return state.gpus[(number >= 1000 ? number / 1000 : number) % 100 % gpu_standin::kGpus];
}
uint32_t Call(Handle handle, gpu_standin::Function function) {
  const int result = state.Call(function);
  return static_cast<uint32_t>(GpuOf(handle).lost != 0 ? GpuOf(handle).lost : result);
}
uint32_t List(Handle device, uint32_t parts, uint32_t* count, Handle* handles) {
  for (uint32_t i = 0; i < parts && i < *count; ++i) {
    handles[i] = Make(NumberOf(device) * 1000 + i);
  }
  *count = parts;
  return 0;
}
template <typename Properties>
uint32_t Describe(Properties* properties, int type, int kind) {
  if (properties->type != type) return ze::kInvalidArgument;
  properties->kind = kind;
  return 0;
}

}  // namespace

extern "C" {
#define EXPORT __attribute__((visibility("default")))

EXPORT gpu_standin::State* gpu_standin_state() { return &state; }

#ifdef GPU_STANDIN_OLD
EXPORT uint32_t zeInit(uint32_t flags) {
  const char* const sysman = std::getenv("ZES_ENABLE_SYSMAN");
  if (flags != ze::kInitGpuOnly || sysman == nullptr) return ze::kUnsupportedFeature;
  return static_cast<uint32_t>(state.Call(gpu_standin::kInit));
}
#define DRIVER_GET zeDriverGet
#define DEVICE_GET zeDeviceGet
#else
EXPORT uint32_t zesInit(uint32_t flags) {
  if (flags != 0) return ze::kInvalidArgument;
  return static_cast<uint32_t>(state.Call(gpu_standin::kInit));
}
#define DRIVER_GET zesDriverGet
#define DEVICE_GET zesDeviceGet
#endif
EXPORT uint32_t DRIVER_GET(uint32_t* count, Handle* drivers) {
  drivers[0] = Make(1);
  *count = 1;
  return 0;
}
EXPORT uint32_t DEVICE_GET(Handle, uint32_t* count, Handle* devices) {
  for (uint32_t i = 0; i < gpu_standin::kGpus && i < *count; ++i) devices[i] = Make(100 + i);
  *count = state.count;
  return 0;
}
EXPORT uint32_t zesDeviceGetProperties(Handle device, ze::DeviceProperties* properties) {
  if (properties->type != ze::kDeviceProperties) return ze::kInvalidArgument;
  properties->core.device_type = ze::kDeviceGpu;
  // The last is another vendor's.
  properties->core.vendor_id = NumberOf(device) == 103 ? 0x10de : ze::kIntel;
  std::memset(properties->core.name, 'x', sizeof properties->core.name);
  return 0;
}
EXPORT uint32_t zesDevicePciGetProperties(Handle device, ze::PciProperties* properties) {
  if (properties->type != ze::kPciProperties) return ze::kInvalidArgument;
  properties->bus = static_cast<uint32_t>(GpuOf(device).place);
  return 0;
}
EXPORT uint32_t zesDevicePciGetStats(Handle device, ze::PciStats* to) {
  const uint32_t result = Call(device, gpu_standin::kPcieRate);
  if (result == 0) {
    *to = {1, 4, 0, GpuOf(device).pcie_received, GpuOf(device).pcie_transmitted, {}};
  }
  return result;
}
// Two modules on the device, one of the system's.
EXPORT uint32_t zesDeviceEnumMemoryModules(Handle device, uint32_t* count, Handle* to) {
  return List(device, 3, count, to);
}
EXPORT uint32_t zesMemoryGetProperties(Handle module, ze::MemoryProperties* to) {
  if (to->type != ze::kMemoryProperties) return ze::kInvalidArgument;
  to->location = PartOf(module) < 2 ? ze::kLocationDevice : 0;
  return 0;
}
EXPORT uint32_t zesMemoryGetState(Handle module, ze::MemoryState* to) {
  if (to->type != ze::kMemoryState) return ze::kInvalidArgument;
  const uint32_t result = Call(module, gpu_standin::kMemory);
  const Gpu& gpu = GpuOf(module);
  to->size = gpu.memory_total;
  to->free = gpu.memory_total - gpu.memory_used;
  return result;
}
EXPORT uint32_t zesDeviceGetCardPowerDomain(Handle device, Handle* to) {
  *to = Make(NumberOf(device) * 1000);
  return 0;
}
EXPORT uint32_t zesPowerGetEnergyCounter(Handle domain, ze::EnergyCounter* to) {
  *to = {GpuOf(domain).energy, GpuOf(domain).energy_time};
  return Call(domain, gpu_standin::kEnergy);
}
// Sensors 0: all, 1 and 2: the GPU's tiles, 3: memory.
EXPORT uint32_t zesDeviceEnumTemperatureSensors(Handle device, uint32_t* count, Handle* to) {
  return List(device, 4, count, to);
}
EXPORT uint32_t zesTemperatureGetProperties(Handle sensor, ze::TemperatureProperties* to) {
  constexpr int kKinds[] = {ze::kSensorGlobal, ze::kSensorGpu, ze::kSensorGpu, ze::kSensorMemory};
  return Describe(to, ze::kTemperatureProperties, kKinds[PartOf(sensor) % 4]);
}
EXPORT uint32_t zesTemperatureGetState(Handle sensor, double* to) {
  *to = static_cast<double>(GpuOf(sensor).temperature) + static_cast<double>(PartOf(sensor));
  return Call(sensor, gpu_standin::kTemperature);
}
EXPORT uint32_t zesDeviceEnumFrequencyDomains(Handle device, uint32_t* count, Handle* to) {
  return List(device, 2, count, to);
}
EXPORT uint32_t zesFrequencyGetProperties(Handle domain, ze::FrequencyProperties* to) {
  return Describe(to, ze::kFrequencyProperties,
                  PartOf(domain) == 0 ? ze::kFrequencyGpu : ze::kFrequencyMemory);
}
EXPORT uint32_t zesFrequencyGetState(Handle domain, ze::FrequencyState* to) {
  if (to->type != ze::kFrequencyState) return ze::kInvalidArgument;
  to->actual = PartOf(domain) == 0 ? static_cast<double>(GpuOf(domain).clock) : -1;
  // The memory's clock is held down by its current, whatever the GPU's does.
  to->throttle_reasons =
      PartOf(domain) == 0 ? static_cast<uint32_t>(GpuOf(domain).throttle) : ze::kThrottleCurrent;
  return Call(domain, gpu_standin::kClock);
}
// Engines 0: copying, 1 and 2: all of compute.
EXPORT uint32_t zesDeviceEnumEngineGroups(Handle device, uint32_t* count, Handle* to) {
  return List(device, 3, count, to);
}
EXPORT uint32_t zesEngineGetProperties(Handle engine, ze::PartProperties* to) {
  return Describe(to, ze::kEngineProperties, PartOf(engine) == 0 ? 3 : 1);
}
EXPORT uint32_t zesEngineGetActivity(Handle engine, ze::EngineStats* to) {
  // The second one rests.
  *to = {PartOf(engine) == 1 ? GpuOf(engine).active : 0, GpuOf(engine).energy_time};
  return Call(engine, gpu_standin::kUtilization);
}
EXPORT uint32_t zesDeviceEnumFabricPorts(Handle device, uint32_t* count, Handle* to) {
  return List(device, 2, count, to);
}
EXPORT uint32_t zesFabricPortGetThroughput(Handle port, ze::PortThroughput* to) {
  *to = {1, GpuOf(port).received[PartOf(port)], GpuOf(port).transmitted[PartOf(port)]};
  return Call(port, gpu_standin::kFields);
}
EXPORT uint32_t zesDeviceEnumRasErrorSets(Handle device, uint32_t* count, Handle* to) {
  return List(device, 2, count, to);
}
EXPORT uint32_t zesRasGetProperties(Handle set, ze::PartProperties* to) {
  return Describe(to, ze::kRasProperties, static_cast<int>(PartOf(set)));
}
EXPORT uint32_t zesRasGetState(Handle set, uint8_t clear, ze::RasState* to) {
  if (to->type != ze::kRasState || clear != 0) return ze::kInvalidArgument;
  const uint64_t errors = PartOf(set) == 0 ? GpuOf(set).corrected : GpuOf(set).uncorrected;
  // Of resets, programs and drivers first, which are not the memory's.
  *to = {ze::kRasState, nullptr, {1000, 1000, 1000, errors, errors, 0, 1000}};
  return Call(set, gpu_standin::kEcc);
}
EXPORT uint32_t zesDeviceProcessesGetState(Handle device, uint32_t* count, ze::ProcessState* to) {
  for (size_t i = 0; i < 4 && i < *count; ++i) {
    if (to[i].type != ze::kProcessState) return ze::kInvalidArgument;
    to[i].pid = GpuOf(device).processes[i].pid;
    to[i].memory = GpuOf(device).processes[i].memory;
  }
  *count = state.process_count;
  return Call(device, gpu_standin::kProcesses);
}
}
