// A vendor's library for looking at its GPUs, loaded when it is there.
//
// What a library says is believed within bounds: counts are cut, texts end somewhere. A function
// that it lacks, or that a device does not support, is not called again; one that fails is tried
// again after growing pauses, and one that is slow is called so seldom that it takes no more than a
// hundredth of the time (call_gate.h). None of this touches the other values.
//
// Libraries are never unloaded: they have threads and exit handlers of their own.
//
// Thread safety: none; one thread, the same from Open on. Calls may block, for as long as a driver
// likes to.
#pragma once

#include <dlfcn.h>

#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "core/time.h"
#include "daemon/collect/gpu/reading.h"

namespace sonde::collect::gpu {

class Library {
 public:
  virtual ~Library() = default;

  virtual std::string_view vendor() const = 0;  // "NVIDIA"
  // What is to be installed, for a message: "libnvidia-ml.so.1".
  virtual std::string_view file() const = 0;

  // Loads it and lists the devices. A node without a device of the vendor's is no failure.
  //   kNotFound     it is not installed
  //   kUnsupported  it lacks what nothing can be done without; final
  //   others        it may work later
  virtual Status Open() = 0;
  // By index. Fixed once it is open.
  virtual const std::vector<Device>& devices() const = 0;
  // The position of the device with this UUID, or of which it names a part; -1 if there is none.
  virtual int Find(const std::string& uuid) = 0;
  // Renews in place a reading that only this device has been read into: a value that is not due
  // stays. If the device does not answer at all, says why; the reading then holds at most what is
  // known without an answer.
  virtual Status Read(size_t device, Reading& reading) = 0;
};

struct LibraryOptions {
  std::vector<std::string> paths;  // tried in order; empty: where the vendor installs it
  // Details too: single links, processes, encoders, fans.
  bool details = false;
  const Clock* clock = nullptr;  // must outlive the library
};

std::unique_ptr<Library> MakeNvml(LibraryOptions options);
std::unique_ptr<Library> MakeRocmSmi(LibraryOptions options);
std::unique_ptr<Library> MakeLevelZero(LibraryOptions options);

// The first of `paths` that can be loaded.
inline void* LoadFirst(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    if (void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
  }
  return nullptr;
}

// `function` becomes the first of the names that the library has, else nullptr. Later versions of a
// function that take the same arguments stand before the older ones.
template <typename Function, typename... Name>
void FindSymbol(void* handle, Function*& function, Name... names) {
  function = nullptr;
  for (const char* name : {names...}) {
    if (function == nullptr) function = reinterpret_cast<Function*>(dlsym(handle, name));
  }
}

// A text of a library's, cut to the length that is believed.
inline std::string Bounded(const char* text, size_t most = 96) {
  return text == nullptr ? std::string() : std::string(text, strnlen(text, most));
}

}  // namespace sonde::collect::gpu
