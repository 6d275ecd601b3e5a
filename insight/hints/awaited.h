// Facts of the rank for which others wait in MPI; step_facts.h has the formulas.
//
// Thread safety: a function without state.
#pragma once

#include <string>

#include "core/status.h"
#include "insight/hints/facts.h"
#include "insight/steps/tick_grid.h"
#include "profiles/archive/archive.h"
#include "profiles/model/profile.h"

namespace sonde::insight {

// Of a step whose calls of MPI were counted. Also sets what is known of serial parts by ranks.
Status AddAwaited(const Archive& archive, const std::string& key, const Profile& profile,
                  const TickGrid& grid, Facts& facts);

}  // namespace sonde::insight
