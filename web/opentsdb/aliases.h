// Names that dashboards made for Dragon's telemetry use, and the metrics that answer them: its
// panels show a step without a change. Nothing is stored under these names; a real series of the
// same name, such as an application's own, comes first.
//
// Some are ratios of two metrics, for each host (and device). So their series are queried one
// by one, divided here, and only then aggregated. The nodes themselves do a downsample by avg:
// the ratio of means, exact if the divisor does not change; other functions work on the
// ratios.
//
// Thread safety: none; a plan belongs to one request.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "web/route/gather.h"
#include "web/source/step_series.h"

namespace sonde::web {

struct OpenTsdbAlias;

// The queries to the data source that answer queries of which some may name aliases.
class OpenTsdbPlan {
 public:
  static Task<OpenTsdbPlan> Make(const StepSeries& series, std::vector<QuerySpec> queries);

  const std::vector<QuerySpec>& specs() const { return specs_; }
  // Turns the answers to specs() into answers to the queries.
  Result<Answers> Fold(Answers answers) const;

 private:
  OpenTsdbPlan() = default;

  struct Part {
    const OpenTsdbAlias* alias;  // nullptr: a metric's own name
    QuerySpec query;
    size_t first;  // of specs_
  };

  std::vector<Part> parts_;
  std::vector<QuerySpec> specs_;
};

// StepSeries::Names, with the aliases whose metrics exist.
Task<Result<SeriesNames>> NamesAndAliases(const StepSeries& series);

// StepSeries::ListSeries, with the aliases whose metrics exist; these have their metric's help.
Task<Result<std::vector<Series>>> ListSeriesAndAliases(const StepSeries& series, std::string metric,
                                                       size_t limit);

}  // namespace sonde::web
