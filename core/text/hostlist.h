// Host names as Slurm writes them for people: n[001-003,007],login.
//
// Thread safety: functions without state.
#pragma once

#include <string>
#include <vector>

namespace sonde {

// Puts names together that end in digits and have the same prefix and number of digits; prefixes
// stay in the order of their first appearance.
std::string CompressHosts(const std::vector<std::string>& hosts);

// For the beginning of a line: that list if it is short, else their number, "12 nodes".
std::string NameHosts(const std::vector<std::string>& hosts);

}  // namespace sonde
