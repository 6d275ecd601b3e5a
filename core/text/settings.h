// Files of lines "name = value", such as sonde.conf, and values that several readers of such files
// parse. '#' begins a comment, and blanks around names and values do not count.
//
// Header-only and free of dependencies, as names.h is, and for the same users.
//
// Thread safety: functions without state.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "core/text/ascii.h"

namespace sonde {

struct Setting {
  std::string_view name;                  // or all of a line without '='
  std::optional<std::string_view> value;  // behind the first '='
  int line = 0;                           // from 1
  std::string_view text;                  // the line without its comment
};

// Calls f(setting) for every line that is not blank, until it gives false.
template <typename F>
void ForEachSetting(std::string_view text, F&& f) {
  for (int number = 1; !text.empty(); ++number) {
    const size_t eol = text.find('\n');
    std::string_view line = text.substr(0, eol);
    line = TrimLine(line.substr(0, line.find('#')));
    const size_t eq = line.find('=');
    Setting setting{TrimLine(line.substr(0, eq)), std::nullopt, number, line};
    if (eq != std::string_view::npos) setting.value = TrimLine(line.substr(eq + 1));
    if (!line.empty() && !f(setting)) return;
    if (eol == std::string_view::npos) return;
    text.remove_prefix(eol + 1);
  }
}

// yes, true, on, 1; no, false, off, 0.
constexpr std::optional<bool> ParseSwitch(std::string_view text) {
  if (text == "yes" || text == "true" || text == "on" || text == "1") return true;
  if (text == "no" || text == "false" || text == "off" || text == "0") return false;
  return std::nullopt;
}

using PortRange = std::pair<uint16_t, uint16_t>;
// "60000-60100", both from 1 to 65535 and in order.
inline std::optional<PortRange> ParsePortRange(std::string_view text) {
  PortRange range;
  const size_t dash = text.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const auto number = [](std::string_view digits, uint16_t& out) {
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), out);
    return error == std::errc() && end == digits.data() + digits.size() && out > 0;
  };
  if (!number(text.substr(0, dash), range.first) || !number(text.substr(dash + 1), range.second) ||
      range.first > range.second) {
    return std::nullopt;
  }
  return range;
}

}  // namespace sonde
