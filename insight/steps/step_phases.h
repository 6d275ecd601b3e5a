// The phases of a finished step: those that the application told, and those that show in the main
// series (insight/steps/watched.h), each with its figures.
//
// Thread safety: functions without state.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/status.h"
#include "insight/steps/tick_grid.h"
#include "insight/steps/whole_step.h"
#include "profiles/archive/archive.h"
#include "profiles/model/profile.h"

namespace sonde::insight {

struct PhaseFigures {
  std::string name;  // as the application told it; "1", "2": found
  Nanos begin = 0;   // the first one of several intervals
  Nanos end = 0;     // the last one
  double seconds = 0;
  size_t intervals = 1;
  std::vector<double> means;  // of the whole step's columns; NaN: nothing is known
};

struct StepPhases {
  TickGrid grid;
  std::vector<StepColumn> columns;  // those that the profile has
  std::vector<PhaseFigures> told;   // by their first begin
  std::vector<PhaseFigures> found;  // one after the other; a single one: nothing changed
};

Result<StepPhases> PhasesOf(const Archive& archive, const std::string& key, const Profile& profile);
// The same phases, with the means of these metrics over their ticks instead.
Result<StepPhases> PhasesWith(const Archive& archive, const std::string& key,
                              const Profile& profile, std::span<const std::string> metrics);

std::string PhasesToJson(const StepPhases& all, const Profile& profile);

}  // namespace sonde::insight
