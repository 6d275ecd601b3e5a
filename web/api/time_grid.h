// The times that a request asks for, in intervals.
//
// Thread safety: functions without state.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/job.h"
#include "core/status.h"
#include "core/time.h"
#include "web/route/route.h"

namespace sonde::web {

struct TimeGrid {
  Nanos start = 0;
  Nanos end = 0;
  Nanos interval = 0;
  uint64_t parts = 0;  // that were asked for

  // Begins at a multiple of `width` at or before the start: a bucket of that width which begins
  // before the range would be left out.
  void Align(Nanos width) { start -= start % width; }
};

// The shortest interval of at least `wanted` with equally many samples in each bucket: a whole
// number of periods and, for series sampled at slow ticks, a divisor or multiple of their period.
Nanos EvenInterval(Nanos wanted, Nanos period);

// How many intervals the range is cut into, at most: a parameter of the request.
struct GridParam {
  std::string_view name;
  uint64_t usual = 0;  // if the request does not say
  uint64_t least = 0;
  uint64_t most = 0;
};

// Parameters `start` and `end`, which are the step's where they are absent, and the one that says
// how many.
Result<TimeGrid> ReadTimeGrid(const Context& context, const Request& request,
                              const JobDescription& job, const GridParam& many);

}  // namespace sonde::web
