// Parses untrusted JSON, with exact numbers.
//
// Boost.JSON 1.81 rounds doubles by a fast method that can be one unit in the last place off; here
// every double is what std::from_chars makes of its digits, so that what JsonWriter wrote comes
// back bit for bit. Depth and sizes are bounded.
//
// Thread safety: functions without state.
#pragma once

#include <boost/json/storage_ptr.hpp>
#include <boost/json/value.hpp>
#include <string_view>

#include "core/status.h"

namespace sonde {

inline constexpr size_t kMaxJsonBytes = size_t{256} << 20;

// The value lives in `storage`. Messages name `what`: "read WHAT: no JSON: ...". Out of memory and
// other exceptions of the library become a Status.
Result<boost::json::value> ParseJson(std::string_view text, std::string_view what,
                                     boost::json::storage_ptr storage = {});

}  // namespace sonde
