#include "daemon/collect/gpu/vendors/nvml_api.h"

#include "daemon/collect/gpu/library.h"

namespace sonde::collect::gpu::nvml {

Api LoadApi(void* handle) {
  Api api{};
  FindSymbol(handle, api.init, "nvmlInit_v2", "nvmlInit");
  FindSymbol(handle, api.shutdown, "nvmlShutdown");
  FindSymbol(handle, api.error_string, "nvmlErrorString");
  FindSymbol(handle, api.count, "nvmlDeviceGetCount_v2", "nvmlDeviceGetCount");
  FindSymbol(handle, api.handle_by_index, "nvmlDeviceGetHandleByIndex_v2",
             "nvmlDeviceGetHandleByIndex");
  FindSymbol(handle, api.handle_by_uuid, "nvmlDeviceGetHandleByUUID");
  FindSymbol(handle, api.parent_of_mig, "nvmlDeviceGetDeviceHandleFromMigDeviceHandle");
  FindSymbol(handle, api.uuid, "nvmlDeviceGetUUID");
  FindSymbol(handle, api.name, "nvmlDeviceGetName");
  FindSymbol(handle, api.pci, "nvmlDeviceGetPciInfo_v3");
  FindSymbol(handle, api.utilization, "nvmlDeviceGetUtilizationRates");
  FindSymbol(handle, api.encoder, "nvmlDeviceGetEncoderUtilization");
  FindSymbol(handle, api.decoder, "nvmlDeviceGetDecoderUtilization");
  FindSymbol(handle, api.memory, "nvmlDeviceGetMemoryInfo");
  FindSymbol(handle, api.memory_v2, "nvmlDeviceGetMemoryInfo_v2");
  FindSymbol(handle, api.power, "nvmlDeviceGetPowerUsage");
  FindSymbol(handle, api.power_limit, "nvmlDeviceGetEnforcedPowerLimit");
  FindSymbol(handle, api.energy, "nvmlDeviceGetTotalEnergyConsumption");
  FindSymbol(handle, api.temperature, "nvmlDeviceGetTemperature");
  FindSymbol(handle, api.clock, "nvmlDeviceGetClockInfo");
  FindSymbol(handle, api.throttle, "nvmlDeviceGetCurrentClocksEventReasons",
             "nvmlDeviceGetCurrentClocksThrottleReasons");
  FindSymbol(handle, api.ecc, "nvmlDeviceGetTotalEccErrors");
  FindSymbol(handle, api.fan, "nvmlDeviceGetFanSpeed");
  FindSymbol(handle, api.pcie_rate, "nvmlDeviceGetPcieThroughput");
  FindSymbol(handle, api.pcie_replays, "nvmlDeviceGetPcieReplayCounter");
  FindSymbol(handle, api.fields, "nvmlDeviceGetFieldValues");
  FindSymbol(handle, api.compute_processes, "nvmlDeviceGetComputeRunningProcesses_v3",
             "nvmlDeviceGetComputeRunningProcesses_v2");
  FindSymbol(handle, api.graphics_processes, "nvmlDeviceGetGraphicsRunningProcesses_v3",
             "nvmlDeviceGetGraphicsRunningProcesses_v2");
  FindSymbol(handle, api.event_set_create, "nvmlEventSetCreate");
  FindSymbol(handle, api.event_set_free, "nvmlEventSetFree");
  FindSymbol(handle, api.event_register, "nvmlDeviceRegisterEvents");
  FindSymbol(handle, api.event_wait, "nvmlEventSetWait_v2", "nvmlEventSetWait");
  return api;
}

double Number(const FieldValue& field) {
  if (field.result != kSuccess) return kMissing;
  switch (field.type) {
    case kDouble:
      return field.value.as_double;
    case kUnsignedInt:
      return field.value.as_unsigned;
    case kUnsignedLong:
      return static_cast<double>(field.value.as_unsigned_long);
    case kUnsignedLongLong:
      return static_cast<double>(field.value.as_unsigned_long_long);
    case kSignedLongLong:
      return static_cast<double>(field.value.as_long_long);
    case kSignedInt:
      return field.value.as_int;
    case kUnsignedShort:
      return field.value.as_unsigned_short;
    default:
      return kMissing;
  }
}

}  // namespace sonde::collect::gpu::nvml
