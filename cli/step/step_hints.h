// Where the site's rules of hints are, and the hints of a step for its report.
//
// Thread safety: functions without state.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"
#include "profiles/archive/archive.h"
#include "profiles/model/profile.h"
#include "profiles/model/summary.h"
#include "profiles/report/hints.h"

namespace sonde::cli {

// hints.d beside sonde.conf.
std::string SiteHintRules(const Environment& env);

// For a report of the step, which can do without: a failure is noted on stderr.
std::vector<ReportHint> HintsOf(const Archive& archive, const std::string& key,
                                const Profile& profile, const std::vector<NodeRow>& nodes,
                                const Environment& env);

}  // namespace sonde::cli
