// Which series of a finished step repeat themselves, and how often (insight/periods.h).
//
// Thread safety: functions without state.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/status.h"
#include "insight/periods.h"
#include "insight/steps/tick_grid.h"
#include "insight/steps/whole_step.h"
#include "profiles/archive/archive.h"
#include "profiles/model/profile.h"

namespace sonde::insight {

struct StepPeriod {
  StepColumn column;
  Periodicity found;
};

struct StepPeriods {
  TickGrid grid;
  std::vector<StepPeriod> all;  // those that repeat themselves first, the surest of them first
};

// Of these metrics or, without any, of the step's main series and the application's first ones.
Result<StepPeriods> PeriodsOf(const Archive& archive, const std::string& key,
                              const Profile& profile, std::span<const std::string> metrics);

std::string PeriodsToJson(const StepPeriods& periods, const Profile& profile);

}  // namespace sonde::insight
