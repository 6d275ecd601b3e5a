// The report of a step in some six lines, which srun prints when the step ends: how it ended, what
// it came to in words, how much of what it had it used, what to change first, what is missing.
//
// Thread safety: functions without state.
#pragma once

#include <string>

#include "profiles/report/report.h"

namespace sonde {

// Lines of at most `options.width` characters that end in a newline.
std::string ShortReport(const Profile& profile, const ReportOptions& options);

}  // namespace sonde
