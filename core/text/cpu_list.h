// Lists of processors as the kernel and Slurm write them: "0-3,8".
//
// Thread safety: functions without state.
#pragma once

#include <charconv>
#include <cstdint>
#include <string_view>

namespace sonde {

// Parses the whole text as a number.
inline bool ParseNumber(std::string_view text, uint32_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

// Calls f(first, last) for each range of the list. False if an entry is no range.
template <typename F>
bool ForEachRange(std::string_view list, F&& f) {
  while (!list.empty()) {
    const size_t comma = list.find(',');
    const std::string_view range = list.substr(0, comma);
    list.remove_prefix(comma == std::string_view::npos ? list.size() : comma + 1);
    const size_t dash = range.find('-');
    uint32_t first = 0, last = 0;
    if (!ParseNumber(range.substr(0, dash), first)) return false;
    last = first;
    if (dash != std::string_view::npos && !ParseNumber(range.substr(dash + 1), last)) return false;
    if (last < first) return false;
    f(first, last);
  }
  return true;
}

}  // namespace sonde
