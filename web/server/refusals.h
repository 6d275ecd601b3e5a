// Answers of a server that has no room.
//
// Thread safety: functions without state.
#pragma once

#include <cstddef>
#include <string_view>

#include "web/http/http.h"

namespace sonde::web {

// 503, to be asked for again in a second.
Response Busy(std::string_view why);
// 413: a body may have so many bytes.
Response TooLong(size_t most);

}  // namespace sonde::web
