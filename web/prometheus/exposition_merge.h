// Texts of several servers as one: samples of a metric stand together, as the formats want it.
//
// Thread safety: functions without state.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sonde::web {

// Of texts as Exposition formats them, all in the same format, whose samples have different labels.
// None if one is no such text, or if they say that a metric is of different types.
std::optional<std::string> MergeExpositions(const std::vector<std::string_view>& texts);

}  // namespace sonde::web
