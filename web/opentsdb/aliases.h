// Names by which dashboards made for Dragon's telemetry ask, and the metrics that answer them: its
// panels show a step without being changed. Nothing is stored under these names; a series that is,
// such as an application's own, goes before.
//
// Some are ratios of two metrics, each host (and device) for itself. So these are asked for series
// by series, put together here, and only then aggregated. A downsample by avg is asked of the nodes
// before: the ratio of means, exact where the divisor does not change; other functions work on the
// ratios themselves.
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

// What to ask the data source for queries of which some may name aliases.
class OpenTsdbPlan {
 public:
  static Task<OpenTsdbPlan> Make(const StepSeries& series, std::vector<QuerySpec> queries);

  const std::vector<QuerySpec>& specs() const { return specs_; }
  // The answers to specs() as answers to the queries.
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

// StepSeries::Names with the aliases of what is there.
Task<Result<SeriesNames>> NamesAndAliases(const StepSeries& series);

// StepSeries::ListSeries with the aliases of what is there, which have their metric's help.
Task<Result<std::vector<Series>>> ListSeriesAndAliases(const StepSeries& series, std::string metric,
                                                       size_t limit);

}  // namespace sonde::web
