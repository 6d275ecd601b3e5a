#include "web/opentsdb/aliases.h"

#include <iterator>
#include <utility>

#include "web/source/answers.h"

namespace sonde::web {

Task<OpenTsdbPlan> OpenTsdbPlan::Make(const StepSeries& series, std::vector<QuerySpec> queries) {
  OpenTsdbPlan plan;
  std::vector<QuerySpec>& specs = plan.specs_;
  for (const QuerySpec& query : queries) {
    std::optional<AliasQuery> alias = AliasQuery::Of(query);
    if (alias) {
      const Result<std::vector<Series>> own =
          co_await Ask(series, &StepSeries::ListSeries, query.metric, size_t{1});
      if (!own.ok() || !own->empty()) alias.reset();
    }
    if (alias) {
      specs.insert(specs.end(), alias->specs().begin(), alias->specs().end());
    } else {
      specs.push_back(query);
    }
    plan.parts_.push_back(std::move(alias));
  }
  co_return plan;
}

Result<Answers> OpenTsdbPlan::Fold(Answers answers) const {
  Answers folded;
  auto next = answers.begin();
  for (const std::optional<AliasQuery>& part : parts_) {
    if (!part) {
      folded.push_back(std::move(*next++));
      continue;
    }
    const auto end = next + static_cast<std::ptrdiff_t>(part->specs().size());
    std::vector<Answer> own(std::make_move_iterator(next), std::make_move_iterator(end));
    next = end;
    Result<Answer> whole = FoldAnswers(*part, std::move(own));
    if (!whole.ok()) return whole.status();
    folded.push_back(*std::move(whole));
  }
  return folded;
}

Task<Result<SeriesNames>> NamesAndAliases(const StepSeries& series) {
  Result<SeriesNames> names = co_await Ask(series, &StepSeries::Names);
  if (names.ok()) AddAliases(names->metrics);
  co_return names;
}

Task<Result<std::vector<Series>>> ListSeriesAndAliases(const StepSeries& series, std::string metric,
                                                       size_t limit) {
  Result<std::vector<Series>> real = co_await Ask(series, &StepSeries::ListSeries, metric, limit);
  if (!real.ok() || (!metric.empty() && !real->empty())) co_return real;
  if (metric.empty()) {
    std::vector<Series> aliases = AliasSeries(*real);
    real->insert(real->end(), std::make_move_iterator(aliases.begin()),
                 std::make_move_iterator(aliases.end()));
    co_return real;
  }
  QuerySpec query;
  query.metric = metric;
  const std::optional<AliasQuery> alias = AliasQuery::Of(query);
  if (!alias) co_return real;
  const Result<std::vector<Series>> from =
      co_await Ask(series, &StepSeries::ListSeries, std::string(alias->metric()), limit);
  if (!from.ok()) co_return from;
  std::vector<Series> all = AliasSeries(*from);
  std::erase_if(all, [&](const Series& one) { return one.metric.name != metric; });
  co_return all;
}

}  // namespace sonde::web
