// The head's clock, as a node knows it: the clock of the step's rows and of what the application
// tells. Clocks of nodes that are set agree on the ticks without help. Of a node whose clock was
// not set when it came, its own series are by its own clock, and the difference stays for the step.
//
// While the step runs the node asks the head for the time every now and then; what its clock then
// differs from the head's by, that difference aside, is for StepClock::Follow.
//
// Thread safety: those of Clock from any thread once Compare was called, the others from one.
#pragma once

#include <optional>
#include <string>

#include "core/time.h"

namespace sonde::node {

class HeadClock final : public Clock {
 public:
  // Clocks that differ by less count as set.
  static constexpr Nanos kTolerance = 200 * kMillisecond;
  // An answer that took longer says too little.
  static constexpr Nanos kMaxWaited = 2 * kSecond;

  explicit HeadClock(const Clock& own) : own_(own) {}

  // The head's clock said `heads` within the last `waited`, of which half is taken. 0: not known.
  // Gives what a reader of the profile must know if the clocks differ.
  std::optional<std::string> Compare(Nanos heads, Nanos waited);
  // The same later on: what our clock is behind, no more than is certain; 0: nothing is.
  Nanos Behind(Nanos heads, Nanos waited) const;

  // The head's clock less ours; 0 if they count as the same.
  Nanos offset() const { return offset_; }
  Nanos Of(Nanos local) const { return local + offset_; }
  // The head's tick that one of ours belongs to.
  Nanos TickOf(Nanos local, Nanos period) const;

  Nanos Now() const override { return Of(own_.Now()); }
  Nanos Monotonic() const override { return own_.Monotonic(); }
  Nanos SinceBoot() const override { return own_.SinceBoot(); }

 private:
  const Clock& own_;
  Nanos offset_ = 0;
};

}  // namespace sonde::node
