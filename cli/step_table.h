// Profiles as lines of a table, as `sonde ls` and `sonde show JOB` print them.
//
// Thread safety: functions without state.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"
#include "core/time.h"
#include "profiles/archive/archive.h"
#include "profiles/select/select.h"

namespace sonde::cli {

// One line each, in order. If no other column shows the value by which they are sorted, one is
// added; `now` ends steps that run.
std::string StepTable(const std::vector<ListedProfile>& profiles, SortBy sort,
                      const Environment& env, Nanos now);

}  // namespace sonde::cli
