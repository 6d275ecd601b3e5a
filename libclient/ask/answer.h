// Decodes the daemon's answers: bodies of layout.h become the structures of sonde_query.h.
//
// Nothing in a body is trusted. Each result is one piece of memory; the caller gives it to free().
//
// Thread safety: functions without state.
#pragma once

#include <string_view>

#include "libclient/sonde_query.h"

namespace sonde::client {

// Both: nullptr if the body is malformed or memory runs out.
sonde_result_t* DecodeResult(std::string_view body);
sonde_list_t* DecodeList(std::string_view body);

}  // namespace sonde::client
