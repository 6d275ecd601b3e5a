// Facts of a step that its profile alone tells: its footprint, its description, and what its job
// asked for.
//
// Thread safety: functions without state.
#pragma once

#include "insight/hints/facts.h"
#include "profiles/model/profile.h"
#include "profiles/model/summary.h"

namespace sonde::insight {

// `summary`: of the same profile.
Facts FactsOfProfile(const Profile& profile, const Summary& summary);

}  // namespace sonde::insight
