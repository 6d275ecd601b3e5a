// The moments of one application process, as its ring has them.
//
// Thread safety: none; the daemon's one thread.
#pragma once

#include <cstdint>
#include <functional>

#include "core/annotation.h"
#include "core/time.h"
#include "daemon/collect/app/ring_reader.h"

namespace sonde::collect {

class AppRing {
 public:
  // Annotations have neither node nor task; their time is the process's word.
  using Take = std::function<void(Annotation annotation)>;

  // Gives `take` the moments told since the last call, in order; returns how many are lost,
  // malformed ones included. `now`: the time, as in the calls before; `last`: nobody writes any
  // more.
  uint64_t Read(const char* base, Nanos now, bool last, const Take& take);

 private:
  MomentsReader reader_;
};

}  // namespace sonde::collect
