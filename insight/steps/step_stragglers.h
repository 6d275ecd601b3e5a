// The nodes and ranks of a finished step that do not behave as the others, with likely causes, and
// how evenly its work is spread.
//
// Thread safety: functions without state.
#pragma once

#include <string>
#include <vector>

#include "core/status.h"
#include "insight/causes.h"
#include "insight/imbalance.h"
#include "insight/steps/step_rows.h"
#include "insight/steps/tick_grid.h"
#include "insight/steps/watched.h"
#include "insight/stragglers.h"
#include "profiles/archive/archive.h"
#include "profiles/model/profile.h"

namespace sonde::insight {

struct NamedCause {
  std::string name;
  std::string metric;
  std::string unit;
  Cause cause;
};

struct NamedStraggler {
  StepRows::Who who;
  Straggler found;
  std::vector<NamedCause> causes;  // the likeliest first
};

// Of one metric.
struct ComparedMetric {
  std::string metric;
  std::string name;
  std::string unit;
  RowsBy by = RowsBy::kRank;
  StragglerFindings found;
  std::vector<NamedStraggler> stragglers;
  ImbalanceOverTime imbalance;
  StepRows::Who most;   // with the largest mean
  StepRows::Who least;  // with the smallest
};

struct StepStragglers {
  TickGrid grid;
  std::vector<ComparedMetric> metrics;  // those that the profile has; the main one first
};

inline constexpr size_t kMostStragglerTicks = 3600;

// At most a share of 0.005 of steps that have none is told to have one, all metrics together.
Result<StepStragglers> StragglersOf(const Archive& archive, const std::string& key,
                                    const Profile& profile);

std::string StragglersToJson(const StepStragglers& all, const Profile& profile);

// "rank 3 on n4", "node n4".
std::string NameOf(const StepRows::Who& who, RowsBy by);

}  // namespace sonde::insight
