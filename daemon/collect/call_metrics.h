// The metrics that Sonde's libraries in a program tell: calls of MPI, for files and of functions,
// and phases. They come as the application's own, and are declared in libclient/.
//
// Thread safety: a function without state.
#pragma once

#include <vector>

#include "core/metric.h"

namespace sonde::collect {

// As they are recorded: in place of a histogram stand its series.
std::vector<Metric> CallMetrics();

}  // namespace sonde::collect
