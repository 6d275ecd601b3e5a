#include "profiles/archive/asked_series.h"

namespace sonde {
namespace {

Thinned ThinnedFor(const QuerySpec& spec) {
  switch (spec.downsample ? spec.downsample->function : spec.aggregator) {
    case Aggregator::kMin:
      return Thinned::kMin;
    case Aggregator::kMax:
      return Thinned::kMax;
    default:
      return Thinned::kMean;
  }
}

}  // namespace

Result<std::vector<SeriesData>> ReadAsked(const Archive& archive, const std::string& key,
                                          SeriesScope scope, const QuerySpec& spec,
                                          const std::function<bool(const Tags&)>& wanted,
                                          const TimeRange& range, Earlier earlier) {
  const SeriesWanted asked([&](const Metric& metric) { return metric.name == spec.metric; },
                           [&](const Series& series) { return wanted(series.tags); });
  return archive.Read(key, scope, asked, range.first, range.last, ThinnedFor(spec), earlier);
}

}  // namespace sonde
