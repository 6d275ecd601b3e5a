// A GPU source on a stand-in for a vendor's library, read at once when it is asked to.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "daemon/collect/gpu/gpu.h"
#include "tests/unit/collect_tree.h"
#include "tests/unit/gpu_standin.h"

namespace sonde::collect {

class SteppedClock final : public Clock {
 public:
  Nanos Now() const override { return time_; }
  Nanos Monotonic() const override { return time_; }
  void Add(Nanos step) { time_ += step; }

 private:
  std::atomic<Nanos> time_ = 1000 * kSecond;
};

class GpuFixture : public testing::Test {
 protected:
  using Make = std::unique_ptr<gpu::Library> (*)(gpu::LibraryOptions);

  // The state of a stand-in, as new.
  static gpu_standin::State* Reset(const char* path) {
    void* const handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      ADD_FAILURE() << dlerror();
      std::abort();
    }
    auto* const get =
        reinterpret_cast<gpu_standin::State* (*)()>(dlsym(handle, "gpu_standin_state"));
    gpu_standin::State* const state = get();
    *state = {};
    return state;
  }
  std::unique_ptr<gpu::Library> Library(Make make, const char* path, int level) {
    return make({.paths = {path}, .details = level >= 4, .clock = &clock_});
  }
  std::unique_ptr<GpuSource> Open(std::vector<std::unique_ptr<gpu::Library>> libraries, int level,
                                  std::string wanted) {
    GpuOptions options;
    options.level = level;
    options.wanted = std::move(wanted);
    options.libraries = std::move(libraries);
    options.patience = options.first_patience = 100 * kSecond;
    options.clock = &clock_;
    auto source = std::make_unique<GpuSource>(std::move(options), tasks_);
    source->Sample(0);
    return source;
  }
  void Sample(GpuSource& source, Nanos later = kSecond) {
    clock_.Add(later);
    source.Sample(0);
  }

  SteppedClock clock_;
  ReadBuffer buffer_;
  TasksSource tasks_{Roots(), buffer_};
};

}  // namespace sonde::collect
