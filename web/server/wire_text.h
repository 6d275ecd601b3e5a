// An answer as its bytes, for a connection that gets nothing else.
//
// Thread safety: functions without state.
#pragma once

#include <string>

#include "web/http/http.h"

namespace sonde::web {

// The whole message, which says that the connection closes; or, for HEAD, without its body. The
// answer has no pieces.
std::string TextOf(const Response& response, bool with_body = true);

}  // namespace sonde::web
