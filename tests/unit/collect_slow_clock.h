// A clock for tests of sensors that are slow to read.
#pragma once

#include "core/time.h"

namespace sonde::collect {

// Every reading takes as long as it is told.
class SlowClock final : public Clock {
 public:
  Nanos Now() const override { return 0; }
  Nanos Monotonic() const override { return time_ += step; }
  Nanos step = 0;

 private:
  mutable Nanos time_ = 0;
};

}  // namespace sonde::collect
