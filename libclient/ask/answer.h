// What the daemon answers, taken apart: bodies of layout.h to the structures of sonde_query.h.
//
// Nothing in a body is trusted. Each result is one piece of memory, to be given to free().
//
// Thread safety: functions without state.
#pragma once

#include <string_view>

#include "libclient/sonde_query.h"

namespace sonde::client {

// Both: nullptr for a body that is malformed, or too large for the memory there is.
sonde_result_t* DecodeResult(std::string_view body);
sonde_list_t* DecodeList(std::string_view body);

}  // namespace sonde::client
