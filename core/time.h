// Points in time and periods.
//
// A time is nanoseconds since the Unix epoch, a duration is nanoseconds. Ticks lie at multiples of
// the period since the epoch, so that all nodes sample together. Times of a step are those of its
// StepClock (daemon/step_clock.h), all others the wall clock's (CLOCK_REALTIME).
//
// Thread safety: functions without state; a Clock may be called from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/status.h"

namespace sonde {

using Nanos = int64_t;

inline constexpr Nanos kMicrosecond = 1'000;
inline constexpr Nanos kMillisecond = 1'000'000;
inline constexpr Nanos kSecond = 1'000'000'000;

inline constexpr Nanos kMinPeriod = 10 * kMillisecond;
inline constexpr Nanos kMaxPeriod = 3600 * kSecond;
inline constexpr Nanos kDefaultPeriod = kSecond;

// Where the time comes from; a test injects its own.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual Nanos Now() const = 0;        // wall clock
  virtual Nanos Monotonic() const = 0;  // for timeouts: never steps
  // Never steps either, and goes on while the machine is suspended.
  virtual Nanos SinceBoot() const { return Monotonic(); }
  // What Now() was when the machine's wall clock said `wall`, not long ago.
  virtual Nanos OfWall(Nanos wall) const { return wall; }

  static const Clock& System();
};

// The first multiple of `period` that lies after `now`.
constexpr Nanos NextTick(Nanos now, Nanos period) { return (now / period + 1) * period; }

// Costly measurements are taken at the first tick in each span of this length, so that all nodes
// take them at the same ticks.
inline constexpr Nanos kSlowPeriod = 10 * kSecond;
constexpr bool IsSlowTick(Nanos tick, Nanos period) { return tick % kSlowPeriod < period; }

// "500ms", "1s", "2m", "1h", "250us"; a bare number is seconds ("0.5"). Used by the options, the
// config file and the endpoints. The caller checks limits.
Result<Nanos> ParseDuration(std::string_view text);

// "1.5 s", "12 min 3 s", "2 h 5 min": for people.
std::string FormatDuration(Nanos duration);

// 2026-11-21T03:07:00Z, UTC.
std::string FormatTime(Nanos time);

}  // namespace sonde
