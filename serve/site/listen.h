// Where a site's server listens: a Unix socket, which everybody may connect to, or an address.
//
// Thread safety: functions without state.
#pragma once

#include <string>

#include "core/status.h"
#include "daemon/loop.h"

namespace sonde::site {

inline constexpr std::string_view kUnixPrefix = "unix:";

// "unix:/PATH" or "ADDRESS:PORT", a numeric address. A socket that a server left behind is taken
// away, one that somebody listens on is kUnavailable.
Result<UniqueFd> Listen(const std::string& where);

}  // namespace sonde::site
