// Looking for a free port in a range.
//
// Header-only and free of dependencies, as settings.h is, and for the same users.
//
// Thread safety: functions without state.
#pragma once

#include <sys/random.h>

#include <cstdint>
#include <string>

#include "core/text/settings.h"

namespace sonde {

// Calls f(port) for each port of the range until it gives true; whether it did. It begins at a
// random one: programs that look at the same time seldom want the same. Port 0, of {0, 0}, lets the
// kernel choose.
template <typename F>
bool TryPorts(PortRange range, F&& f) {
  const uint32_t count = range.second - range.first + 1u;
  uint32_t start = 0;
  // Without randomness it begins at the first.
  if (::getrandom(&start, sizeof start, GRND_NONBLOCK) != sizeof start) start = 0;
  start %= count;
  for (uint32_t i = 0; i < count; ++i) {
    if (f(static_cast<uint16_t>(range.first + (start + i) % count))) return true;
  }
  return false;
}

inline std::string NoFreePort(PortRange range) {
  return "no free port from " + std::to_string(range.first) + " to " + std::to_string(range.second);
}

// "60000-60100", as ParsePortRange takes it.
inline std::string PortRangeText(PortRange range) {
  return std::to_string(range.first) + "-" + std::to_string(range.second);
}

}  // namespace sonde
