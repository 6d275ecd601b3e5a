// Letters and blanks of ASCII, whatever the locale.
//
// Header-only and free of dependencies, as names.h is, and for the same users.
//
// Thread safety: functions without state.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace sonde {

constexpr char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

inline std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = Lower(c);
  return lower;
}

constexpr bool EqualsIgnoringCase(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return Lower(x) == Lower(y); });
}

// Without the blanks at both ends.
constexpr std::string_view Trim(std::string_view text, std::string_view blanks = " \t") {
  const size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}
// The same for a line of a file with its line end.
constexpr std::string_view TrimLine(std::string_view line) { return Trim(line, " \t\r\n"); }

}  // namespace sonde
