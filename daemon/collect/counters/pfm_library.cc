#include "daemon/collect/counters/pfm_library.h"

#include <dlfcn.h>
#include <perfmon/pfmlib_perf_event.h>

#include "daemon/collect/read/directory.h"

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

Status PfmLibrary::ForEach(const std::function<void(const PfmEvent&)>& f) const {
  if (!failure_.ok()) return failure_;
  const auto pmu_info = Find<decltype(pfm_get_pmu_info)>(handle_, "pfm_get_pmu_info");
  const auto event_info = Find<decltype(pfm_get_event_info)>(handle_, "pfm_get_event_info");
  const auto next = Find<decltype(pfm_get_event_next)>(handle_, "pfm_get_event_next");
  const auto attr_info =
      Find<decltype(pfm_get_event_attr_info)>(handle_, "pfm_get_event_attr_info");
  if (pmu_info == nullptr || event_info == nullptr || next == nullptr || attr_info == nullptr) {
    return {Code::kUnsupported, std::string(kName) + " is too old to list events"};
  }
  const auto text = [](const char* t) { return std::string(t == nullptr ? "" : t); };
  for (int p = PFM_PMU_NONE; p < PFM_PMU_MAX; ++p) {
    pfm_pmu_info_t pmu = {};
    pmu.size = sizeof(pmu);
    if (pmu_info(static_cast<pfm_pmu_t>(p), &pmu) != PFM_SUCCESS || pmu.is_present == 0) continue;
    for (int e = pmu.first_event; e != -1; e = next(e)) {
      pfm_event_info_t info = {};
      info.size = sizeof(info);
      if (event_info(e, PFM_OS_PERF_EVENT, &info) != PFM_SUCCESS) continue;
      PfmEvent event{text(pmu.name), text(info.name), text(info.desc), {}};
      for (int a = 0; a < info.nattrs; ++a) {
        pfm_event_attr_info_t mask = {};
        mask.size = sizeof(mask);
        if (attr_info(e, a, PFM_OS_PERF_EVENT, &mask) != PFM_SUCCESS) continue;
        if (mask.type == PFM_ATTR_UMASK) event.masks.push_back({text(mask.name), text(mask.desc)});
      }
      f(event);
    }
  }
  return {};
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
