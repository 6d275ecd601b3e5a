// An answer as bytes, for a connection that gets only this answer.
//
// Thread safety: functions without state.
#pragma once

#include <string>

#include "web/http/http.h"

namespace sonde::web {

// The whole message, which says that the connection closes; for HEAD without its body. The answer
// must have no pieces.
std::string TextOf(const Response& response, bool with_body = true);

}  // namespace sonde::web
