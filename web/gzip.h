// Unpacks bodies that come as gzip (RFC 1952).
//
// Thread safety: functions without state.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/status.h"

namespace sonde::web {

// kInvalid for what is no whole gzip file, kLimit if it would have more than `limit` bytes. One
// member only, as every program writes it.
Result<std::string> Gunzip(std::string_view bytes, size_t limit);

}  // namespace sonde::web
