// The system's clocks in ns, with the C library alone.
//
// Thread safety: functions without state.
#pragma once

#include <stdint.h>
#include <time.h>

namespace sonde {

inline int64_t ReadClock(clockid_t clock) {
  timespec now = {};
  clock_gettime(clock, &now);
  return static_cast<int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

inline int64_t MonotonicNow() { return ReadClock(CLOCK_MONOTONIC); }
// Goes on while the machine is suspended.
inline int64_t BootNow() { return ReadClock(CLOCK_BOOTTIME); }
// Since 1970.
inline int64_t WallNow() { return ReadClock(CLOCK_REALTIME); }

}  // namespace sonde
