// Host names as Slurm writes them for people: n[001-003,007],login.
//
// Thread safety: functions without state.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sonde {

// Puts names together that end in digits and have the same prefix and number of digits; prefixes
// stay in the order of their first appearance.
std::string CompressHosts(const std::vector<std::string>& hosts);

// For the beginning of a line: that list if it is short, else their number, "12 nodes".
std::string NameHosts(const std::vector<std::string>& hosts);

// The hosts of such a list in its order, the first `most` of them; several ranges in one name are
// allowed, rack[1-2]n[01-16]. Nothing: it is no such list.
std::optional<std::vector<std::string>> ExpandHosts(std::string_view list, size_t most);

}  // namespace sonde
