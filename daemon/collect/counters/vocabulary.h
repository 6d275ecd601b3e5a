// The metrics that event sets may speak of: names and meanings are the same on every processor,
// whatever it calls its events, so that jobs on different machines can be compared.
//
// Thread safety: functions without state.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/metric.h"

namespace sonde::collect {

// An event `cycles` is recorded as task_perf_cycles_total.
struct EventWord {
  std::string_view name;
  MetricDecl decl;
};

std::span<const EventWord> EventWords();
// The values that formulas give.
std::span<const MetricDecl> DerivedMetrics();

// The metric of an event. One that is not in the vocabulary gets a name made of its own: small
// letters, all but letters and digits as '_'. `clock`: it counts nanoseconds.
Metric EventMetric(std::string_view name, bool clock);
// nullptr if formulas give no such metric.
const MetricDecl* FindDerived(std::string_view metric);

// All of them, for the documentation.
std::vector<MetricDecl> CounterMetrics();

// Which part of the time a group's events were counted.
extern const MetricDecl kRunningRatio;
// Whether the counters are released to somebody else.
extern const MetricDecl kReleased;

}  // namespace sonde::collect
