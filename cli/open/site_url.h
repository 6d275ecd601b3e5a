// The way to the page of a site's server (sonde serve --site), and the user's token for it, which
// the server tells to processes of the user's on its own host.
//
// Thread safety: functions without state.
#pragma once

#include <string>

#include "cli/open/way.h"
#include "core/status.h"

namespace sonde::cli {

// `socket`: the path of the server's Unix socket. kUnavailable if it cannot be asked.
Result<std::string> SiteToken(const std::string& socket);

// All of it in words.
std::string ToldOfSite(const std::string& socket, const std::string& token, const Here& here);

}  // namespace sonde::cli
