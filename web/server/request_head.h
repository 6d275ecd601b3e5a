// The head of a request as it stands on the wire, checked before any parser reads it.
//
// What two programs could read in two ways is refused, so that nothing can be smuggled past a proxy
// that stands before this server: lines that are folded or end otherwise than in CRLF, a length
// that is given twice or beside a transfer coding, codings other than chunked, more than one Host.
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

// Length of the head at the start of `bytes` with the empty line that ends it; npos if that has not
// come yet.
size_t HeadLength(std::string_view bytes);

// `head` ends with its empty line.
std::optional<HeadFault> CheckHead(std::string_view head);

}  // namespace sonde::web
