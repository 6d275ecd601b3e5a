#include "daemon/collect/gpu/vendors/level_zero_api.h"

#include "daemon/collect/gpu/library.h"

namespace sonde::collect::gpu::ze {

Api LoadApi(void* handle) {
  Api api{};
  FindSymbol(handle, api.init, "zesInit");
  FindSymbol(handle, api.ze_init, "zeInit");
  // A device's handle is the same in both worlds if zeInit made it.
  if (api.init != nullptr) {
    FindSymbol(handle, api.drivers, "zesDriverGet");
    FindSymbol(handle, api.devices, "zesDeviceGet");
  } else {
    FindSymbol(handle, api.drivers, "zeDriverGet");
    FindSymbol(handle, api.devices, "zeDeviceGet");
  }
  FindSymbol(handle, api.properties, "zesDeviceGetProperties");
  FindSymbol(handle, api.pci_properties, "zesDevicePciGetProperties");
  FindSymbol(handle, api.pci_stats, "zesDevicePciGetStats");
  FindSymbol(handle, api.memories, "zesDeviceEnumMemoryModules");
  FindSymbol(handle, api.memory_properties, "zesMemoryGetProperties");
  FindSymbol(handle, api.memory_state, "zesMemoryGetState");
  FindSymbol(handle, api.card_power, "zesDeviceGetCardPowerDomain");
  FindSymbol(handle, api.powers, "zesDeviceEnumPowerDomains");
  FindSymbol(handle, api.energy, "zesPowerGetEnergyCounter");
  FindSymbol(handle, api.temperatures, "zesDeviceEnumTemperatureSensors");
  FindSymbol(handle, api.temperature_properties, "zesTemperatureGetProperties");
  FindSymbol(handle, api.temperature, "zesTemperatureGetState");
  FindSymbol(handle, api.frequencies, "zesDeviceEnumFrequencyDomains");
  FindSymbol(handle, api.frequency_properties, "zesFrequencyGetProperties");
  FindSymbol(handle, api.frequency, "zesFrequencyGetState");
  FindSymbol(handle, api.engines, "zesDeviceEnumEngineGroups");
  FindSymbol(handle, api.engine_properties, "zesEngineGetProperties");
  FindSymbol(handle, api.activity, "zesEngineGetActivity");
  FindSymbol(handle, api.ports, "zesDeviceEnumFabricPorts");
  FindSymbol(handle, api.throughput, "zesFabricPortGetThroughput");
  FindSymbol(handle, api.errors, "zesDeviceEnumRasErrorSets");
  FindSymbol(handle, api.error_properties, "zesRasGetProperties");
  FindSymbol(handle, api.error_state, "zesRasGetState");
  FindSymbol(handle, api.processes, "zesDeviceProcessesGetState");
  return api;
}

}  // namespace sonde::collect::gpu::ze
