#include "daemon/link/libfabric/fabric_library.h"

#include <dlfcn.h>
#include <fmt/core.h>
#include <rdma/fi_errno.h>

#include <cstdlib>

namespace sonde::tree {
namespace {

template <typename F>
bool Find(void* handle, const char* name, F& function) {
  function = reinterpret_cast<F>(dlsym(handle, name));
  return function != nullptr;
}

Result<FabricLibrary> LoadNow() {
  constexpr const char* kName = "libfabric.so.1";
  void* handle = dlopen(kName, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    return Status(
        Code::kUnsupported,
        fmt::format("load {}: {}; install libfabric or leave tree.fabric unset", kName, dlerror()));
  }
  FabricLibrary library{};
  const bool complete =
      Find(handle, "fi_getinfo", library.getinfo) &&
      Find(handle, "fi_freeinfo", library.freeinfo) &&
      Find(handle, "fi_dupinfo", library.dupinfo) && Find(handle, "fi_fabric", library.fabric) &&
      Find(handle, "fi_strerror", library.strerror) && Find(handle, "fi_version", library.version);
  if (!complete) return Status(Code::kUnsupported, fmt::format("load {}: {}", kName, dlerror()));
  return library;
}

}  // namespace

Result<const FabricLibrary*> FabricLibrary::Load() {
  static const Result<FabricLibrary> library = LoadNow();
  if (!library.ok()) return library.status();
  return &*library;
}

Status FabricLibrary::Error(std::string_view what, long error) const {
  const int number = static_cast<int>(std::labs(error));
  // Below FI_ERRNO_OFFSET they are those of the system.
  const Code code = number < FI_ERRNO_OFFSET ? SystemError({}, number).code() : Code::kIo;
  return {code, fmt::format("{}: {}", what, strerror(number))};
}

std::string FabricLibrary::VersionText() const {
  const uint32_t number = version();
  return fmt::format("{}.{}", FI_MAJOR(number), FI_MINOR(number));
}

}  // namespace sonde::tree
