// Taking apart the lines of event sets and of the kernel's descriptions of its counters.
//
// Thread safety: functions without state.
#pragma once

#include <charconv>
#include <concepts>
#include <optional>
#include <string_view>

#include "core/text/ascii.h"

namespace sonde::collect {

// The text before `separator` without blanks around it, which is taken off with the separator.
inline std::string_view TakeUntil(std::string_view& text, char separator) {
  const size_t at = text.find(separator);
  const std::string_view part = TrimLine(text.substr(0, at));
  text = at == std::string_view::npos ? std::string_view{} : text.substr(at + 1);
  return part;
}

// All of the text: decimal, or hexadecimal behind 0x.
template <std::unsigned_integral T>
std::optional<T> ParseWhole(std::string_view text) {
  const bool hex = text.starts_with("0x");
  if (hex) text.remove_prefix(2);
  T value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, hex ? 16 : 10);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace sonde::collect
