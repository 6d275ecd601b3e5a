// Where a process is in the hierarchies of control groups.
//
// Thread safety: functions without state.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace sonde::launch {

// Of /proc/PID/cgroup's text: the path in the hierarchy of that controller of version 1, or with ""
// in the unified hierarchy; "" if the process is in none. Lines are "NUMBER:CONTROLLERS:PATH"; the
// unified hierarchy has "0::PATH". The result points into the text.
inline std::string_view CgroupPath(std::string_view text, std::string_view controller) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const size_t first = line.find(':');
    const size_t second = line.find(':', first == std::string_view::npos ? first : first + 1);
    if (second == std::string_view::npos) continue;
    std::string_view names = line.substr(first + 1, second - first - 1);
    const std::string_view path = line.substr(second + 1);
    if (controller.empty() && names.empty()) return path;
    while (!controller.empty() && !names.empty()) {
      const size_t comma = std::min(names.find(','), names.size());
      if (names.substr(0, comma) == controller) return path;
      names.remove_prefix(std::min(comma + 1, names.size()));
    }
  }
  return {};
}

}  // namespace sonde::launch
