// What would follow from the numbers of a made step (made_step.h), as the commands and endpoints
// write it.
//
// Thread safety: functions without state.
#pragma once

#include <string>

#include "core/status.h"
#include "profiles/model/profile.h"

namespace sonde::web {

// `slow`: the index of the node that falls behind; of `ranks` on each.
Result<std::string> ConclusionOf(const Profile& profile, const std::string& of, int slow,
                                 int ranks);

}  // namespace sonde::web
