#include "daemon/collect/counters/pfm_library.h"

#include <dlfcn.h>
#include <perfmon/pfmlib_perf_event.h>

#include "daemon/collect/directory.h"

namespace sonde::collect {
namespace {

constexpr char kName[] = "libpfm.so.4";

template <typename F>
F* Find(void* handle, const char* name) {
  return handle == nullptr ? nullptr : reinterpret_cast<F*>(dlsym(handle, name));
}

}  // namespace

PfmLibrary::PfmLibrary(const Roots& roots)
    : devices_(roots.sys + "/bus/event_source/devices/"),
      handle_(dlopen(kName, RTLD_NOW | RTLD_LOCAL)) {
  const auto initialize = Find<decltype(pfm_initialize)>(handle_, "pfm_initialize");
  const auto explain = Find<decltype(pfm_strerror)>(handle_, "pfm_strerror");
  const auto encode =
      Find<decltype(pfm_get_os_event_encoding)>(handle_, "pfm_get_os_event_encoding");
  if (initialize == nullptr || explain == nullptr || encode == nullptr) {
    failure_ = {Code::kUnsupported, std::string(kName) + " is not installed here"};
  } else if (const int error = initialize(); error != PFM_SUCCESS) {
    failure_ = {Code::kUnsupported, explain(error)};
  }
}

PfmLibrary::~PfmLibrary() {
  if (handle_ == nullptr) return;
  const auto terminate = Find<decltype(pfm_terminate)>(handle_, "pfm_terminate");
  if (failure_.ok() && terminate != nullptr) terminate();
  dlclose(handle_);
}

Status PfmLibrary::Encode(const std::string& event, perf_event_attr& attr) const {
  if (!failure_.ok()) return failure_;
  pfm_perf_encode_arg_t arg = {};
  arg.attr = &attr;
  arg.size = sizeof(arg);
  const int error = Find<decltype(pfm_get_os_event_encoding)>(handle_, "pfm_get_os_event_encoding")(
      event.c_str(), PFM_PLM3, PFM_OS_PERF_EVENT, &arg);
  if (error == PFM_SUCCESS) {
    if (attr.type >= PERF_TYPE_MAX && IsProcessor(attr.type)) attr.type = PERF_TYPE_RAW;
    return {};
  }
  return {Code::kInvalid, Find<decltype(pfm_strerror)>(handle_, "pfm_strerror")(error)};
}

// The counters of processors say which of these have them; those beside the processors have a
// `cpumask` instead.
bool PfmLibrary::IsProcessor(uint32_t type) const {
  ReadBuffer buffer;
  for (const std::string& device : ListDirectory(devices_)) {
    const std::string path = devices_ + device;
    if (FirstLine(path + "/type", buffer) != std::to_string(type)) continue;
    return !FirstLine(path + "/cpus", buffer).empty();
  }
  return false;
}

}  // namespace sonde::collect
