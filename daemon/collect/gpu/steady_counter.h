// Makes a counter that may start again, wrap around or show nonsense one that only rises, from 0.
//
// What a device added while its counter was set back is not known, and not guessed. Neither is a
// rise that no device can have made: after a reset, some counters jump.
//
// Thread safety: a value.
#pragma once

#include "core/time.h"
#include "daemon/collect/gpu/reading.h"

namespace sonde::collect::gpu {

class SteadyCounter {
 public:
  // The total after the raw value read at `at`; missing if that value is missing.
  double Add(double raw, Nanos at, double most_per_second);
  // For a value without a counter: adds rate * time, by the trapezoid rule; nothing for the time
  // around a missing rate.
  double Integrate(double rate, Nanos at);

 private:
  double total_ = 0;
  double last_raw_ = kMissing;
  double last_rate_ = kMissing;
  Nanos last_at_ = 0;
};

}  // namespace sonde::collect::gpu
