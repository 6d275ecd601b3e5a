#include "daemon/node/record/head_clock.h"

#include <fmt/core.h>

#include <cstdlib>

namespace sonde::node {

std::optional<std::string> HeadClock::Compare(Nanos heads, Nanos waited) {
  if (heads == 0 || waited == 0) return std::nullopt;
  const Nanos ahead = Clock::System().Now() - waited / 2 - heads;
  if (std::abs(ahead) <= kTolerance + waited / 2) return std::nullopt;
  offset_ = -ahead;
  return fmt::format(
      "the clock is {:.1f} s {} that of the head's host; series of this node alone are by its own",
      static_cast<double>(std::abs(ahead)) / kSecond, ahead > 0 ? "ahead of" : "behind");
}

Nanos HeadClock::TickOf(Nanos local, Nanos period) const {
  return offset_ == 0 ? local : (Of(local) + period / 2) / period * period;
}

}  // namespace sonde::node
