// What a metric-proxy serves below /job, as an exposition.
//
// metric-proxy keeps counters, and gauges as min, max, hits and total, of which the mean is what is
// recorded. Of a list of jobs it is main, the sum of all, else the first. Names carry their labels,
// as in an exposition; metric-proxy writes one quotation mark too many behind those that it has
// scraped itself. Counters that cannot be written as a sample are left out.
//
// Nothing in it is trusted.
//
// Thread safety: functions without state.
#pragma once

#include <string>
#include <string_view>

#include "core/status.h"

namespace sonde::join {

// Whether an answer is one, and no exposition.
bool IsSnapshot(std::string_view body);
Result<std::string> ExpositionOf(std::string_view snapshot);

}  // namespace sonde::join
