// Which running step a request is about.
//
// Thread safety: functions without state.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/task.h"
#include "web/http/http.h"
#include "web/source/step_history.h"

namespace sonde::web {

// metric-proxy's name of all jobs together.
inline constexpr std::string_view kMainJob = "main";

// The steps that run, newest first.
Task<Result<std::vector<JobDescription>>> RunningSteps(const StepHistory& history);

// The one that is named; without a name, or with that of all, the only one that runs. kInvalid if
// there are several, kNotFound if there is none.
Task<Result<JobStep>> RunningStep(const StepHistory& history, std::string target);

// The profiles of steps, in their order, asked for at the same time: for steps that run, whose
// servers may not answer. A profile of an archive is read as a whole, so many are asked for one by
// one.
Task<std::vector<Result<Profile>>> ProfilesOf(const StepHistory& history, std::vector<JobStep> ids);

// An answer in metric-proxy's form: {"operation": text, "success": ...}; an error has Sonde's
// member "error" besides.
Response ProxyError(const Status& status);

}  // namespace sonde::web
