// Host names as Slurm writes them for people: n[001-003,007],login.
//
// Thread safety: functions without state.
#pragma once

#include <string>
#include <vector>

namespace sonde::web {

// Names that end in digits and share what stands before them and the number of digits are put
// together; the order of the prefixes' first appearance is kept.
std::string CompressHosts(const std::vector<std::string>& hosts);

}  // namespace sonde::web
