// Places where nodes listen as a text of one line, for an acting head's launch message.
//
// Thread safety: functions without state.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "daemon/message/message.h"

namespace sonde::tree {

// "INDEX HOST PORT", with commas between.
std::string ToText(const std::vector<Place>& places);
// What is no place is left out, and what comes behind kMaxSuccessors places.
std::vector<Place> PlacesOf(std::string_view text);

}  // namespace sonde::tree
