// Dragon's names (series/alias/aliases.h) among the metrics of a data source: its dashboard's
// panels show a step without a change.
//
// Thread safety: none; a plan belongs to one request.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/status.h"
#include "series/alias/aliases.h"
#include "web/route/gather.h"
#include "web/source/step_series.h"

namespace sonde::web {

// The queries to the data source that answer queries of which some may name aliases.
class OpenTsdbPlan {
 public:
  static Task<OpenTsdbPlan> Make(const StepSeries& series, std::vector<QuerySpec> queries);

  const std::vector<QuerySpec>& specs() const { return specs_; }
  // Turns the answers to specs() into answers to the queries.
  Result<Answers> Fold(Answers answers) const;

 private:
  OpenTsdbPlan() = default;

  // Of each query; nothing: it is asked as it is.
  std::vector<std::optional<AliasQuery>> parts_;
  std::vector<QuerySpec> specs_;
};

// StepSeries::Names, with the aliases whose metrics exist.
Task<Result<SeriesNames>> NamesAndAliases(const StepSeries& series);

// StepSeries::ListSeries, with the aliases whose metrics exist.
Task<Result<std::vector<Series>>> ListSeriesAndAliases(const StepSeries& series, std::string metric,
                                                       size_t limit);

}  // namespace sonde::web
