#include "daemon/node/record/head_clock.h"

#include <fmt/core.h>

#include <cstdlib>

namespace sonde::node {
namespace {

constexpr Nanos kLastTime = INT64_MAX / 2;

}  // namespace

std::optional<std::string> HeadClock::Compare(Nanos heads, Nanos waited) {
  if (heads == 0 || waited == 0) return std::nullopt;
  const Nanos ahead = own_.Now() - waited / 2 - heads;
  if (std::abs(ahead) <= kTolerance + waited / 2) return std::nullopt;
  offset_ = -ahead;
  return fmt::format(
      "the clock is {:.1f} s {} that of the head's host; series of this node alone are by its own",
      static_cast<double>(std::abs(ahead)) / kSecond, ahead > 0 ? "ahead of" : "behind");
}

Nanos HeadClock::Behind(Nanos heads, Nanos waited) const {
  if (heads <= 0 || heads > kLastTime || waited < 0 || waited > kMaxWaited) return 0;
  const Nanos behind = heads + waited / 2 - Now();
  const Nanos doubt = waited / 2;
  return std::abs(behind) <= doubt ? 0 : behind;
}

Nanos HeadClock::TickOf(Nanos local, Nanos period) const {
  return offset_ == 0 ? local : (Of(local) + period / 2) / period * period;
}

}  // namespace sonde::node
