// Files of the kernel that tell of one process or control group in a few lines.
//
// Thread safety: functions without state.
#pragma once

#include <string>
#include <string_view>

namespace sonde::node {

// The kernel writes such a file in one piece; of a longer one, the beginning. "" if it cannot be
// read.
std::string ReadSmall(const std::string& path);

// Of /proc/PID/cgroup's text: the path in the hierarchy of that controller of version 1, or with ""
// in the unified hierarchy; "" if the process is in none.
std::string CgroupPath(std::string_view text, std::string_view controller);

}  // namespace sonde::node
