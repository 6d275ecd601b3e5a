#include "daemon/collect/call_metrics.h"

#include <utility>

#include "daemon/collect/app/histograms.h"
#include "daemon/collect/app/segment.h"
#include "libclient/interpose/call_metrics.h"
#include "libclient/phases.h"

namespace sonde::collect {
namespace {

using interpose::CallType;

MetricType TypeOf(CallType type) {
  switch (type) {
    case CallType::kGauge:
      return MetricType::kGauge;
    case CallType::kCounter:
      return MetricType::kCounter;
    case CallType::kHistogram:
      break;
  }
  return MetricType::kHistogram;
}

Metric Make(std::string_view name, std::string_view unit, MetricType type, std::string_view help) {
  Metric metric;
  metric.name = name;
  metric.unit = unit;
  metric.type = type;
  metric.help = help;
  // What libsonde registers: the mean of gauges, the sum of all else.
  metric.reduction = type == MetricType::kGauge ? Reduction::kMean : Reduction::kSum;
  metric.spread = AppHasSpread(type, name);
  return metric;
}

}  // namespace

std::vector<Metric> CallMetrics() {
  std::vector<Metric> all;
  for (const interpose::CallMetric* call : interpose::kCallMetrics) {
    Metric metric = Make(call->name, call->unit, TypeOf(call->type), call->help);
    if (metric.type != MetricType::kHistogram) {
      all.push_back(std::move(metric));
      continue;
    }
    Series histogram;
    histogram.metric = std::move(metric);
    for (Series& series : AppHistograms::SeriesOf(histogram)) {
      all.push_back(std::move(series.metric));
    }
  }
  all.push_back(Make(client::kPhaseCounter, "seconds", MetricType::kCounter, client::kPhaseHelp));
  return all;
}

}  // namespace sonde::collect
