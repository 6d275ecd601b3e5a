// A share of the loop's time: whoever works on the loop for others asks whether some is left, and
// says how much it took. Of each tenth of a second a fifth may go that way.
//
// Thread safety: none.
#pragma once

#include "core/time.h"

namespace sonde::head {

class LoopShare {
 public:
  static constexpr Nanos kSpan = kSecond / 10;
  static constexpr Nanos kMost = kSpan / 5;

  // Times are monotonic.
  bool IsLeft(Nanos now) {
    if (now - begun_ >= kSpan) {
      begun_ = now;
      taken_ = 0;
    }
    return taken_ < kMost;
  }
  void Take(Nanos from, Nanos to) { taken_ += to - from; }

 private:
  Nanos begun_ = 0;
  Nanos taken_ = 0;
};

}  // namespace sonde::head
