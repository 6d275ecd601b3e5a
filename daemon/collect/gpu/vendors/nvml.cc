#include "daemon/collect/gpu/vendors/nvml.h"

#include <algorithm>
#include <cstdio>

namespace sonde::collect::gpu {
namespace {

constexpr int kMaxEvents = 32;  // taken at a time

}  // namespace

Nvml::Nvml(LibraryOptions options) : options_(std::move(options)) {
  if (options_.paths.empty()) options_.paths = {kNvmlFile};
}

Nvml::~Nvml() {
  if (!open_) return;
  if (events_ != nullptr && api_.event_set_free != nullptr) api_.event_set_free(events_);
  if (api_.shutdown != nullptr) api_.shutdown();
}

std::string Nvml::Explain(int result) const {
  const std::string text =
      api_.error_string == nullptr ? std::string() : Bounded(api_.error_string(result));
  return text.empty() ? "error " + std::to_string(result) : text;
}

Status Nvml::Open() {
  if (!loaded_) {
    void* const handle = LoadFirst(options_.paths);
    if (handle == nullptr) {
      return {Code::kNotFound, std::string(kNvmlFile) + " is not installed here"};
    }
    api_ = nvml::LoadApi(handle);
    loaded_ = true;
  }
  if (api_.init == nullptr || api_.count == nullptr || api_.handle_by_index == nullptr) {
    return {Code::kUnsupported, std::string(kNvmlFile) + " lacks the basic functions of NVML"};
  }
  const int result = open_ ? nvml::kSuccess : api_.init();
  // A library without a driver: a node without such GPUs.
  if (result == nvml::kDriverNotLoaded || result == nvml::kLibraryNotFound ||
      result == nvml::kGpuNotFound) {
    return {};
  }
  if (result != nvml::kSuccess) return {Code::kUnavailable, "nvmlInit: " + Explain(result)};
  open_ = true;
  unsigned int count = 0;
  if (const int error = api_.count(&count); error != nvml::kSuccess) {
    return {Code::kUnavailable, "nvmlDeviceGetCount: " + Explain(error)};
  }
  for (unsigned i = 0; i < std::min<unsigned>(count, kMaxDevices); ++i) AddDevice(i);
  if (options_.details) listed_.resize(kMaxProcesses);
  ListenForEvents();
  return {};
}

// A device that cannot be opened now (another's, or broken) is none of the step's.
void Nvml::AddDevice(unsigned index) {
  State state;
  if (api_.handle_by_index(index, &state.handle) != nvml::kSuccess) return;
  Device device;
  device.index = index;
  char text[97] = {};
  if (api_.uuid != nullptr && api_.uuid(state.handle, text, sizeof text - 1) == nvml::kSuccess) {
    device.uuid = Bounded(text, sizeof text - 1);
  }
  if (api_.name != nullptr && api_.name(state.handle, text, sizeof text - 1) == nvml::kSuccess) {
    device.name = Bounded(text, sizeof text - 1);
  }
  nvml::PciInfo pci{};
  if (api_.pci != nullptr && api_.pci(state.handle, &pci) == nvml::kSuccess) {
    std::snprintf(text, sizeof text, "%04x:%02x:%02x.0", pci.domain, pci.bus, pci.device);
    device.pci = text;
  }
  devices_.push_back(std::move(device));
  states_.push_back(state);
}

// XIDs come as events; drivers may refuse them to users.
void Nvml::ListenForEvents() {
  if (api_.event_set_create == nullptr || api_.event_register == nullptr ||
      api_.event_wait == nullptr || api_.event_set_create(&events_) != nvml::kSuccess) {
    events_ = nullptr;
    return;
  }
  for (const State& state : states_) {
    if (api_.event_register(state.handle, nvml::kEventXid, events_) == nvml::kSuccess) {
      events_known_ = true;
    }
  }
}

void Nvml::TakeEvents() {
  const Nanos start = options_.clock->Monotonic();
  if (!events_known_ || !event_gate_.Due(start)) return;
  int result = nvml::kSuccess;
  for (int i = 0; i < kMaxEvents && result == nvml::kSuccess; ++i) {
    nvml::EventData event{};
    result = api_.event_wait(events_, &event, 0);
    if (result != nvml::kSuccess || (event.type & nvml::kEventXid) == 0) continue;
    for (State& state : states_) {
      if (state.handle != event.device) continue;
      ++state.xids;
      state.last_xid = static_cast<double>(event.data);
    }
  }
  // A timeout means that there is nothing to tell.
  const bool works = result == nvml::kSuccess || result == nvml::kTimeout;
  event_gate_.Done(works ? Outcome::kRead : Outcome::kFailed, start, options_.clock->Monotonic());
}

int Nvml::Find(const std::string& uuid) {
  nvml::Handle handle = nullptr;
  if (api_.handle_by_uuid == nullptr ||
      api_.handle_by_uuid(uuid.c_str(), &handle) != nvml::kSuccess) {
    handle = nullptr;
  }
  nvml::Handle parent = nullptr;
  if (handle != nullptr && uuid.starts_with("MIG-") && api_.parent_of_mig != nullptr &&
      api_.parent_of_mig(handle, &parent) == nvml::kSuccess) {
    handle = parent;
  }
  for (size_t i = 0; i < devices_.size(); ++i) {
    if (devices_[i].uuid == uuid || (handle != nullptr && states_[i].handle == handle)) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

std::unique_ptr<Library> MakeNvml(LibraryOptions options) {
  return std::make_unique<Nvml>(std::move(options));
}

}  // namespace sonde::collect::gpu
