// Whether a call to a library is worth making.
//
// One for each function and device. What a device does not support is not asked again. What fails
// is asked again after 1 s, then 2, 4, ... 64 s. What is slow waits for a hundred times as long as
// it took: it costs at most a hundredth of the time. As anything may delay a call once, the quicker
// of the last two counts.
//
// Thread safety: values.
#pragma once

#include <cstdint>
#include <limits>

#include "core/time.h"

namespace sonde::collect::gpu {

// After a failure, doubled after each that follows.
inline constexpr Nanos kFirstPause = kSecond;
inline constexpr Nanos kLongestPause = 64 * kSecond;

enum class Outcome : uint8_t { kRead, kFailed, kUnsupported };

class CallGate {
 public:
  bool Due(Nanos now) const { return now >= due_; }
  void Done(Outcome outcome, Nanos start, Nanos end);
  // The last call failed, or there was none: what it gives is missing.
  bool missing() const { return missing_; }
  // As if nothing had ever been called: another device, or the same after a reset.
  void Reset() { *this = CallGate(); }

 private:
  Nanos due_ = 0;
  Nanos pause_ = 0;
  Nanos took_ = 0;
  bool missing_ = true;
};

// What a call gave.
enum class Taken : uint8_t { kNew, kOld, kNothing };

// Calls `function` if the gate lets it. `classify` makes an Outcome of what it returns.
template <typename Classify, typename Function, typename... Arguments>
Taken CallThrough(CallGate& gate, const Clock& clock, Classify classify, Function* function,
                  Arguments... arguments) {
  const Nanos start = clock.Monotonic();
  if (!gate.Due(start)) return gate.missing() ? Taken::kNothing : Taken::kOld;
  const Outcome outcome =
      function == nullptr ? Outcome::kUnsupported : classify((*function)(arguments...));
  gate.Done(outcome, start, clock.Monotonic());
  return outcome == Outcome::kRead ? Taken::kNew : Taken::kNothing;
}

// Takes over a new value; a missing one becomes NaN.
inline void Take(Taken taken, double value, double& to) {
  if (taken == Taken::kNew) to = value;
  if (taken == Taken::kNothing) to = std::numeric_limits<double>::quiet_NaN();
}

}  // namespace sonde::collect::gpu
