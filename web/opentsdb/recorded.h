// Which series a metric has, as a query finds them: of running steps too, whose heads by themselves
// know what is reduced over tasks and nodes.
//
// Thread safety: functions without state.
#pragma once

#include <string>
#include <vector>

#include "core/metric.h"
#include "core/status.h"
#include "core/task.h"
#include "web/route/route.h"

namespace sonde::web {

// As StepSeries::ListSeries. If a metric is named, each series of a running step is listed with all
// of its tags, `task` among them, and only where it is; this asks the nodes. Of nodes that do not
// answer it is what the head knows.
Task<Result<std::vector<Series>>> ListRecordedSeries(const Context& context, std::string metric,
                                                     size_t limit);

}  // namespace sonde::web
