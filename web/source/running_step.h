// Finds the running step that a request concerns.
//
// Thread safety: functions without state.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/task.h"
#include "web/source/step_history.h"

namespace sonde::web {

// metric-proxy's name for all jobs together.
inline constexpr std::string_view kMainJob = "main";

// The running steps, newest first.
Task<Result<std::vector<JobDescription>>> RunningSteps(const StepHistory& history);

// The named step; without a name, or with the name of all, the only running step. kInvalid if
// several run, kNotFound if none does.
Task<Result<JobStep>> RunningStep(const StepHistory& history, std::string target);

// The profiles of steps, in order. All running steps are asked at the same time, since their
// servers may not answer. An archived profile is read as a whole, so archived ones are asked for
// one by one.
Task<std::vector<Result<Profile>>> ProfilesOf(const StepHistory& history, std::vector<JobStep> ids);

}  // namespace sonde::web
