// Host names as Slurm writes them for people: n[001-003,007],login.
//
// Thread safety: functions without state.
#pragma once

#include <string>
#include <vector>

namespace sonde {

// Names that end in digits and share what stands before them and the number of digits are put
// together; the order of the prefixes' first appearance is kept.
std::string CompressHosts(const std::vector<std::string>& hosts);

// For the beginning of a line: that list if it is short, else their number, "12 nodes".
std::string NameHosts(const std::vector<std::string>& hosts);

}  // namespace sonde
