// The main series of a whole step over time, one row of ticks for each: sums of counters' rates
// over its nodes and devices, and what the step's rows say of gauges.
//
// Thread safety: functions without state.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/status.h"
#include "insight/steps/tick_grid.h"
#include "profiles/archive/archive.h"
#include "profiles/model/profile.h"

namespace sonde::insight {

inline constexpr size_t kMostStepTicks = 86'400;

struct StepColumn {
  std::string metric;
  std::string name;  // for people
  std::string unit;  // of a counter, of its rate
};

// `metrics`: empty: those of PhaseSeries() (watched.h), and the first ones of the application.
// Columns without values are left out, and so are metrics that the profile does not have.
Status ReadWholeStep(const Archive& archive, const std::string& key, const Profile& profile,
                     const TickGrid& grid, std::span<const std::string> metrics,
                     std::vector<StepColumn>& columns, std::vector<std::vector<double>>& rows);

}  // namespace sonde::insight
