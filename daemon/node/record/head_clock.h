// The head's clock, as a node knows it. Nodes whose clocks are set agree on the ticks without help.
// A node whose clock is not set uses the head's where its data meets the others': in the step's
// rows and in what the application tells.
//
// Thread safety: none; one thread at a time.
#pragma once

#include <optional>
#include <string>

#include "core/time.h"

namespace sonde::node {

class HeadClock {
 public:
  // Clocks that differ by less count as set.
  static constexpr Nanos kTolerance = 200 * kMillisecond;

  // The head's clock said `heads` within the last `waited`, of which half is taken. 0: not known.
  // Gives what a reader of the profile must know if the clocks differ.
  std::optional<std::string> Compare(Nanos heads, Nanos waited);

  // The head's clock less ours; 0 if they count as the same.
  Nanos offset() const { return offset_; }
  Nanos Of(Nanos local) const { return local + offset_; }
  // The head's tick that one of ours belongs to.
  Nanos TickOf(Nanos local, Nanos period) const;

 private:
  Nanos offset_ = 0;
};

}  // namespace sonde::node
