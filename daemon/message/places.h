// Places where nodes listen as a text of one line, for an acting head's launch message.
//
// Thread safety: functions without state.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/message/message.h"

namespace sonde::tree {

// A place, and the least version of the protocol that who listens there is known to speak: whoever
// answers with less is somebody else.
struct KnownPlace {
  Place place;
  uint32_t least = kEarlierVersion;
};

// "INDEX HOST PORT VERSION", with commas between.
std::string ToText(const std::vector<KnownPlace>& places);
// What is no place is left out, and what comes behind kMaxSuccessors places.
std::vector<KnownPlace> PlacesOf(std::string_view text);

}  // namespace sonde::tree
