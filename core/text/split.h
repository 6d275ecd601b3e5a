// A text with separators, as its parts.
//
// Thread safety: a function without state.
#pragma once

#include <string_view>
#include <vector>

namespace sonde {

// Also the parts that are empty: "a,,b" has three, and "" has one.
inline std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

}  // namespace sonde
