// The head of a request as it stands on the wire, checked before any parser reads it.
//
// Text that two programs could read in two ways is refused, so that no request is smuggled past a
// proxy in front of this server: lines that are folded or do not end in CRLF, a length that is
// given twice or beside a transfer coding, codings other than chunked, more than one Host.
//
// Thread safety: functions without state.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace sonde::web {

inline constexpr size_t kMaxHeaderLines = 64;

struct HeadFault {
  int status = 400;
  std::string message;
};

// Length of the head at the start of `bytes` with the empty line that ends it; npos if that line
// has not come yet.
size_t HeadLength(std::string_view bytes);

// `head` ends with its empty line.
std::optional<HeadFault> CheckHead(std::string_view head);

}  // namespace sonde::web
