// Files of the kernel that tell of one process or control group in a few lines.
//
// Thread safety: a function without state.
#pragma once

#include <string>

namespace sonde::node {

// The kernel writes such a file in one piece; of a longer one, the beginning. "" if it cannot be
// read.
std::string ReadSmall(const std::string& path);

}  // namespace sonde::node
