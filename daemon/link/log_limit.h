// At most one line a second of what strangers can bring about as often as they like.
//
// Thread safety: none; one thread at a time.
#pragma once

#include "core/time.h"

namespace sonde::tree {

class LogLimit {
 public:
  // Whether a line may be written now.
  bool Take() {
    const Nanos now = Clock::System().Monotonic();
    if (last_ != 0 && now - last_ < kSecond) return false;
    last_ = now;
    return true;
  }

 private:
  Nanos last_ = 0;
};

}  // namespace sonde::tree
