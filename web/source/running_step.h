// Which running step a request is about.
//
// Thread safety: functions without state.
#pragma once

#include <string_view>

#include "web/data_source.h"

namespace sonde::web {

// metric-proxy's name of all jobs together.
inline constexpr std::string_view kMainJob = "main";

// The steps that run, newest first.
Result<std::vector<JobDescription>> RunningSteps(const DataSource& source);

// The one that is named; without a name, or with that of all, the only one that runs. kInvalid if
// there are several, kNotFound if there is none.
Result<JobStep> RunningStep(const DataSource& source, std::string_view target);

// An answer in metric-proxy's form: {"operation": text, "success": ...}; an error has Sonde's
// member "error" besides.
Response ProxyError(const Status& status);

}  // namespace sonde::web
