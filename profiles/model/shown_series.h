// Shows a stored series to people and other programs.
//
// Thread safety: functions without state.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/job.h"
#include "core/metric.h"

namespace sonde {

// The host of a node of the step; "node7" if the host is not known.
std::string HostOfNode(const JobDescription& job, uint32_t node);

// Reduced series stay as they are; the series of a node's group get their host, and their tasks'
// ranks in the step, which in blocks count from the node's first rank (series/store/task_ranks.h).
void AddShownTags(uint32_t node, std::string_view group, const JobDescription& job, Tags& tags);
Series ShownSeries(const Series& series, uint32_t node, std::string_view group,
                   const JobDescription& job);

}  // namespace sonde
