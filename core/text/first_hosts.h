// The beginning of a list of hosts that is too long to be carried.
//
// Header-only, as it is compiled into spank_sonde.so.
//
// Thread safety: functions without state.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace sonde {

// A list of the first hosts of n[001-003,007],login that has at most `most` bytes; "" if there is
// none.
inline std::string FirstHosts(std::string_view list, size_t most) {
  if (list.size() <= most) return std::string(list);
  size_t entry = 0;  // where the name begins that does not fit
  size_t range = 0;  // where its range ends, of one range, as far as it fits; 0: nowhere
  int ranges = 0;
  bool inside = false;
  for (size_t i = 0; i < most; ++i) {
    if (list[i] == '[') inside = true, ++ranges;
    if (list[i] == ']') inside = false, range = 0;
    if (list[i] != ',') continue;
    if (inside) {
      range = i;
    } else {
      entry = i, range = 0, ranges = 0;
    }
  }
  // Where a name goes on behind the range the hosts would be others, and so they would be of
  // several ranges.
  const size_t end = range == 0 ? std::string_view::npos : list.find(']', range);
  const bool ends =
      end != std::string_view::npos && (end + 1 == list.size() || list[end + 1] == ',');
  if (ends && ranges == 1) return std::string(list.substr(0, range)) + "]";
  return std::string(list.substr(0, entry));
}

}  // namespace sonde
