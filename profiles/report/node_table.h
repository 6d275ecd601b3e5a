// The table of a report with a line for each node, or for those that got the least CPU time.
//
// Thread safety: functions without state.
#pragma once

#include <string>

#include "profiles/model/summary.h"
#include "profiles/report/report.h"

namespace sonde {

// "" without nodes.
std::string NodeTable(const JobDescription& job, const Summary& summary,
                      const ReportOptions& options);

}  // namespace sonde
