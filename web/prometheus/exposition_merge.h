// Merges texts of several servers: all samples of a metric are together, as the formats require.
//
// Thread safety: functions without state.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sonde::web {

// For texts from Exposition, all in the same format, whose samples have different labels. None if a
// text is not of that format, or if the texts give a metric different types.
std::optional<std::string> MergeExpositions(const std::vector<std::string_view>& texts);

}  // namespace sonde::web
