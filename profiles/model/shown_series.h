// A stored series as people and other programs see it.
//
// Thread safety: functions without state.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/job.h"
#include "core/metric.h"

namespace sonde {

// The host of a node of the step; "node7" if that is not known.
std::string HostOfNode(const JobDescription& job, uint32_t node);

// Reduced series as they are; those of a node's group carry their host, and their tasks' ranks in
// the step, which in blocks are told from the node's first (series/store/task_ranks.h).
Series ShownSeries(const Series& series, uint32_t node, std::string_view group,
                   const JobDescription& job);

}  // namespace sonde
