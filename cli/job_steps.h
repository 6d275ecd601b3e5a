// The steps of a job together, also those of its array's tasks, its components and its requeues.
//
// Thread safety: functions without state.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"
#include "core/status.h"
#include "profiles/archive/archive.h"

namespace sonde::cli {

// A line that sums them up, then one for each.
std::string JobText(const std::string& job, const std::vector<ListedProfile>& steps,
                    const Environment& env, Nanos now);
// A list of {"key", "job", "step", "state", "start", "end", "nodes", "summary"}.
std::string JobToJson(const std::vector<ListedProfile>& steps, Nanos now);

}  // namespace sonde::cli
