// What the endpoints of traces ask for: which step and metric, over which time, in how many points;
// and the lines that come back.
//
// A point is the step's number by the metric's reduction. A step of more points than are asked for
// is downsampled: gauges to their mean, counters to their last value.
//
// Thread safety: functions without state; an AskedTrace is read by one request.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "profiles/model/profile.h"
#include "series/query/query.h"
#include "web/route/gather.h"

namespace sonde::web {

inline constexpr uint64_t kDefaultTracePoints = 10'000;
inline constexpr uint64_t kMaxTracePoints = 100'000;

struct AskedTrace {
  Profile profile;
  std::string steps;             // their ids, with | between them
  std::string metric;            // as SeriesName writes it; "": none
  const FootprintEntry* series;  // of the profile; nullptr: none
  Nanos start = 0;
  Nanos end = 0;
  Nanos interval = 0;  // 0: as measured
};

// Of a step or of main, and of its metric `filter`, if that is there and not empty. kInvalid
// without a job, kNotFound for one that is not known, and for a metric that it has not.
Task<Result<std::shared_ptr<AskedTrace>>> AskForTrace(const Context& context,
                                                      const Request& request,
                                                      const std::string* job,
                                                      const std::string* filter);

// The range and the interval that follow from the step's time and the number of points.
void SetTraceRange(uint64_t points, Nanos now, AskedTrace& asked);

// Counters are added, whatever they declare.
Aggregator TraceAggregatorOf(const Metric& metric);

// Of all series of the metric.
QuerySpec TraceSpecOf(const AskedTrace& asked, const Metric& metric, Aggregator aggregator);
// Of one series.
QuerySpec TraceSpecOf(const AskedTrace& asked, const FootprintEntry& entry, Aggregator aggregator);

// Whether the change of a line is asked for beside it: only the series shows where in a bucket of a
// downsampled counter its value lies, so its rates are queried.
bool AsksForRates(const QuerySpec& spec, const Metric& metric);
QuerySpec RatesOf(QuerySpec spec);

double InSeconds(Nanos time);

// Times stay whole until they are written: a double of seconds since 1970 is a quarter of a
// microsecond off, and the difference of two at a short period far more than a rate may be.
using TraceLine = std::vector<Point>;

// Without points that are not there.
TraceLine TraceLineOf(const std::vector<Point>& points);
TraceLine FirstLine(const Answer& answer);
// The change per second since the previous point; 0 at the first, as in metric-proxy.
TraceLine Derived(const TraceLine& line);
// The same of a line whose rates were queried.
TraceLine FromRates(const TraceLine& line, const TraceLine& rates);

// The line of the metric that is asked for, or its change per second.
Task<Result<TraceLine>> LineOfTrace(const Context& context, std::shared_ptr<const AskedTrace> asked,
                                    bool derivate);

}  // namespace sonde::web
