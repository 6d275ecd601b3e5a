// Where a site's server listens: a Unix socket, to which everybody may connect, or an address.
//
// Thread safety: functions without state.
#pragma once

#include <string>

#include "core/status.h"
#include "daemon/loop.h"

namespace sonde::site {

inline constexpr std::string_view kUnixPrefix = "unix:";

// "unix:/PATH" or "ADDRESS:PORT", a numeric address. A socket that an ended server left is removed;
// one on which a server listens is kUnavailable.
Result<UniqueFd> Listen(const std::string& where);

}  // namespace sonde::site
