// The answers that metric-proxy's clients read as {"operation": TEXT, "success": true or false}.
//
// Thread safety: functions without state.
#pragma once

#include <string_view>

#include "web/http/http.h"

namespace sonde::web {

// Something was done. The text says what, or is what was asked for.
Response Success(std::string_view operation);

// An error on one of metric-proxy's paths, as its clients read it: "operation" says what is wrong.
// Sonde's own member `error` stays. Any other answer stays as it is.
Response AsOperation(Response response);

}  // namespace sonde::web
