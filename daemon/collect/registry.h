// Every metric that Sonde collects itself, as declared in the sources' files; docs/metrics.md and
// the tool list_metrics are made from it.
//
// Thread safety: may be called from any thread.
#pragma once

#include <string>
#include <vector>

#include "core/metric.h"

namespace sonde::collect {

struct SourceMetrics {
  std::string_view title;
  std::string_view about;  // one sentence
  std::vector<MetricDecl> metrics;
  bool dear = false;  // sampled every kSlowPeriod below level 4
};

// By source, in the order of the documentation.
const std::vector<SourceMetrics>& MetricsBySource();
// All of them.
const std::vector<MetricDecl>& AllMetrics();

// docs/metrics.md.
std::string MetricsAsMarkdown();
// One JSON object per line: of a metric, and of all of them.
std::string MetricAsJsonLine(const MetricDecl& metric);
std::string MetricsAsJsonLines();

}  // namespace sonde::collect
