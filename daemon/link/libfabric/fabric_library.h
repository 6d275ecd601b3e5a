// libfabric, loaded when it is first needed.
//
// Its constructors and the first fi_getinfo cost 60 to 90 ms of CPU, so nothing is linked against
// it: a step that is over before the tree uses the fabric does not pay, and a machine without
// libfabric runs without it. Only the six functions below are symbols of the library; everything
// else in its headers is inline, through the tables of the objects.
//
// Thread safety: Load from any thread; the functions as libfabric says. Loaded once and never
// unloaded: libfabric's providers do not survive that.
#pragma once

#include <rdma/fabric.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

namespace sonde::tree {

// What this source was written against; a newer library keeps to it.
inline constexpr uint32_t kFabricVersion = FI_VERSION(1, 9);

struct FabricLibrary {
  decltype(&::fi_getinfo) getinfo;
  decltype(&::fi_freeinfo) freeinfo;
  decltype(&::fi_dupinfo) dupinfo;
  decltype(&::fi_fabric) fabric;
  decltype(&::fi_strerror) strerror;
  decltype(&::fi_version) version;

  // kUnsupported if there is no libfabric.so.1 or it lacks one of the functions. May take 0.1 s.
  static Result<const FabricLibrary*> Load();

  // What libfabric's error number (negative or positive) says about `what`.
  Status Error(std::string_view what, long error) const;
  std::string VersionText() const;
};

struct FabricInfoDeleter {
  const FabricLibrary* library;
  void operator()(fi_info* info) const { library->freeinfo(info); }
};
using FabricInfo = std::unique_ptr<fi_info, FabricInfoDeleter>;

// Any of libfabric's objects, closed with its owner.
struct FidCloser {
  template <typename T>
  void operator()(T* object) const {
    object->fid.ops->close(&object->fid);
  }
};
template <typename T>
using FidPtr = std::unique_ptr<T, FidCloser>;

}  // namespace sonde::tree
