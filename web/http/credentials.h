// What an Authorization header says.
//
// Thread safety: functions without state.
#pragma once

#include <string>
#include <string_view>

namespace sonde::web {

// The token of "Bearer TOKEN", whatever the scheme's case; empty for another scheme.
std::string_view BearerToken(std::string_view header);
// The "USER:PASSWORD" of basic authentication; empty for another scheme, for what is not base64,
// and for more than a kilobyte of it.
std::string BasicPair(std::string_view header);

}  // namespace sonde::web
