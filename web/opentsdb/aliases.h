// Dragon's names (series/alias/aliases.h) among the metrics of a data source, and what its
// dashboards mean by their queries: their panels show a step without a change.
//
// A panel of Dragon's asks for the sum, with filters host=* and perhaps gpu=* that do not group,
// and expects a line for each host and GPU. OpenTSDB would add them all up. So a query of that form
// for one of Dragon's names, or for what a program has recorded by Dragon's add_data(), groups by
// these tags and by host. Of one of Dragon's names that the step does not have there are then no
// results, and no error; so also of any other metric that is not there, if Grafana asks as Dragon's
// data source sets it up (version 2.3): a dashboard has panels for metrics that a program may never
// record.
//
// Thread safety: none; a plan belongs to one request.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/status.h"
#include "series/alias/aliases.h"
#include "web/opentsdb/request.h"
#include "web/route/gather.h"
#include "web/route/route.h"
#include "web/source/step_series.h"

namespace sonde::web {

// The queries to the data source that answer queries of which some may name aliases.
class OpenTsdbPlan {
 public:
  static Task<OpenTsdbPlan> Make(const StepSeries& series, const OpenTsdbQuery& query);

  const std::vector<QuerySpec>& specs() const { return specs_; }
  // The queries as they are meant, and whether it is no error if there is nothing of that name.
  const std::vector<QuerySpec>& queries() const { return queries_; }
  bool MayBeAbsent(size_t query) const { return may_be_absent_[query]; }
  // Turns the answers to specs() into answers to the queries.
  Result<Answers> Fold(Answers answers) const;

 private:
  OpenTsdbPlan() = default;

  // Of each query; nothing: it is asked as it is.
  std::vector<std::optional<AliasQuery>> parts_;
  std::vector<QuerySpec> specs_;
  std::vector<QuerySpec> queries_;
  std::vector<bool> may_be_absent_;  // by query
};

// StepSeries::Names, with the aliases whose metrics exist.
Task<Result<SeriesNames>> NamesAndAliases(const StepSeries& series);

// ListRecordedSeries, with the aliases whose metrics exist.
Task<Result<std::vector<Series>>> ListSeriesAndAliases(const Context& context, std::string metric,
                                                       size_t limit);

}  // namespace sonde::web
