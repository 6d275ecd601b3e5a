// A clock that goes on when the test says so.
#pragma once

#include "core/time.h"

namespace sonde {

class FakeClock final : public Clock {
 public:
  Nanos Now() const override { return time; }
  Nanos Monotonic() const override { return time; }
  Nanos time = kSecond;
};

}  // namespace sonde
