#include "daemon/collect/gpu/vendors/level_zero.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace sonde::collect::gpu {
namespace {

constexpr size_t kMaxParts = 64;

std::string Hex(uint32_t result) {
  char text[32];
  std::snprintf(text, sizeof text, "error 0x%x", result);
  return text;
}

std::vector<ze::Handle> Handles(ze::Handle of, ze::Api::List list) {
  std::vector<ze::Handle> handles(kMaxParts);
  auto count = static_cast<uint32_t>(handles.size());
  if (list == nullptr || list(of, &count, handles.data()) != ze::kSuccess) count = 0;
  handles.resize(std::min<size_t>(count, kMaxParts));
  return handles;
}

}  // namespace

LevelZero::LevelZero(LibraryOptions options) : options_(std::move(options)) {
  if (options_.paths.empty()) options_.paths = {kFile};
}

Status LevelZero::Open() {
  if (!loaded_) {
    void* const handle = LoadFirst(options_.paths);
    if (handle == nullptr) {
      return {Code::kNotFound, std::string(kFile) + " is not installed here"};
    }
    api_ = ze::LoadApi(handle);
    loaded_ = true;
  }
  if ((api_.init == nullptr && api_.ze_init == nullptr) || api_.drivers == nullptr ||
      api_.devices == nullptr || api_.properties == nullptr) {
    return {Code::kUnsupported, std::string(kFile) + " lacks the basic functions of Sysman"};
  }
  const uint32_t result = api_.init != nullptr ? api_.init(0) : api_.ze_init(ze::kInitGpuOnly);
  // What it says where there is no driver for such a GPU.
  if (result == ze::kUninitialized || result == ze::kUnsupportedFeature ||
      result == ze::kDependencyUnavailable) {
    return {};
  }
  if (result != ze::kSuccess) return {Code::kUnavailable, "zesInit: " + Hex(result)};
  return List();
}

Status LevelZero::List() {
  devices_.clear();
  states_.clear();
  std::vector<ze::Handle> drivers(kMaxParts);
  auto count = static_cast<uint32_t>(drivers.size());
  if (const uint32_t error = api_.drivers(&count, drivers.data()); error != ze::kSuccess) {
    return {Code::kUnavailable, "zesDriverGet: " + Hex(error)};
  }
  drivers.resize(std::min<size_t>(count, kMaxParts));
  for (ze::Handle driver : drivers) {
    for (ze::Handle device : Handles(driver, api_.devices)) {
      if (states_.size() < kMaxDevices && AddDevice(device)) ListParts(states_.back());
    }
  }
  std::sort(states_.begin(), states_.end(),
            [](const State& a, const State& b) { return a.place < b.place; });
  for (const State& state : states_) {
    Device& device = devices_.emplace_back();
    device.index = static_cast<unsigned>(devices_.size() - 1);
    char pci[32];
    std::snprintf(pci, sizeof pci, "%04x:%02x:%02x.%x", static_cast<unsigned>(state.place >> 32),
                  static_cast<unsigned>(state.place >> 16 & 0xff),
                  static_cast<unsigned>(state.place >> 8 & 0xff),
                  static_cast<unsigned>(state.place & 0xff));
    device.pci = pci;
    ze::DeviceProperties properties{};
    properties.type = ze::kDeviceProperties;
    if (api_.properties(state.handle, &properties) == ze::kSuccess) {
      device.name = Bounded(properties.core.name);
    }
  }
  if (options_.details) {
    listed_.resize(kMaxProcesses);
    for (ze::ProcessState& process : listed_) process.type = ze::kProcessState;
  }
  return {};
}

bool LevelZero::AddDevice(ze::Handle handle) {
  ze::DeviceProperties properties{};
  properties.type = ze::kDeviceProperties;
  if (api_.properties(handle, &properties) != ze::kSuccess ||
      properties.core.device_type != ze::kDeviceGpu || properties.core.vendor_id != ze::kIntel) {
    return false;
  }
  State& state = states_.emplace_back();
  state.handle = handle;
  state.place = states_.size();
  ze::PciProperties pci{};
  pci.type = ze::kPciProperties;
  if (api_.pci_properties != nullptr && api_.pci_properties(handle, &pci) == ze::kSuccess) {
    state.place = uint64_t{pci.domain} << 32 | (pci.bus & 0xff) << 16 | (pci.device & 0xff) << 8 |
                  (pci.function & 0xff);
  }
  return true;
}

template <typename Properties>
std::vector<LevelZero::Part> LevelZero::Parts(ze::Handle device, ze::Api::List list, ze::Type type,
                                              uint32_t (*describe)(ze::Handle, Properties*)) const {
  std::vector<Part> parts;
  for (ze::Handle handle : Handles(device, list)) {
    Properties properties{};
    properties.type = type;
    if (describe == nullptr || describe(handle, &properties) != ze::kSuccess) continue;
    parts.push_back({handle, properties.kind});
  }
  return parts;
}

void LevelZero::ListParts(State& state) const {
  for (ze::Handle handle : Handles(state.handle, api_.memories)) {
    ze::MemoryProperties properties{};
    properties.type = ze::kMemoryProperties;
    if (api_.memory_properties != nullptr &&
        api_.memory_properties(handle, &properties) == ze::kSuccess &&
        properties.location == ze::kLocationDevice) {
      state.memories.push_back(handle);
    }
  }
  // The whole card's; else the first domain, which is the device's.
  if (api_.card_power == nullptr || api_.card_power(state.handle, &state.power) != ze::kSuccess) {
    const std::vector<ze::Handle> powers = Handles(state.handle, api_.powers);
    state.power = powers.empty() ? nullptr : powers.front();
  }
  state.temperatures = Parts(state.handle, api_.temperatures, ze::kTemperatureProperties,
                             api_.temperature_properties);
  state.frequencies =
      Parts(state.handle, api_.frequencies, ze::kFrequencyProperties, api_.frequency_properties);
  state.ports = Handles(state.handle, api_.ports);
  if (state.ports.size() > kMaxLinks) state.ports.resize(kMaxLinks);
  state.errors = Parts(state.handle, api_.errors, ze::kRasProperties, api_.error_properties);
  const std::vector<Part> engines =
      Parts(state.handle, api_.engines, ze::kEngineProperties, api_.engine_properties);
  for (const int group : ze::kEngineGroups) {
    for (const Part& engine : engines) {
      if (engine.kind == group) state.engines.push_back(engine.handle);
    }
    if (!state.engines.empty()) break;
  }
}

// Masks name devices by number alone.
int LevelZero::Find(const std::string&) { return -1; }

std::unique_ptr<Library> MakeLevelZero(LibraryOptions options) {
  // What loaders before zesInit look at; the daemon has one thread as yet.
  setenv("ZES_ENABLE_SYSMAN", "1", 1);
  return std::make_unique<LevelZero>(std::move(options));
}

}  // namespace sonde::collect::gpu
