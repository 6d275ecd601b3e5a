#include "web/opentsdb/aliases.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "web/opentsdb/recorded.h"
#include "web/source/answers.h"

namespace sonde::web {

namespace {

constexpr std::string_view kHost = "host";

bool HasFormOfDragons(const QuerySpec& query) {
  return query.aggregator == Aggregator::kSum && !query.filters.empty() &&
         std::all_of(query.filters.begin(), query.filters.end(), [](const TagFilter& filter) {
           return filter.type == TagFilter::Type::kWildcard && filter.pattern == "*" &&
                  !filter.group_by;
         });
}

void GroupAsDragon(QuerySpec& query) {
  for (TagFilter& filter : query.filters) filter.group_by = true;
  const bool has_host = std::any_of(query.filters.begin(), query.filters.end(),
                                    [](const TagFilter& filter) { return filter.key == kHost; });
  if (!has_host) {
    query.filters.push_back({TagFilter::Type::kWildcard, std::string(kHost), "*", true});
  }
}

}  // namespace

Task<OpenTsdbPlan> OpenTsdbPlan::Make(const StepSeries& series, const OpenTsdbQuery& asked) {
  OpenTsdbPlan plan;
  // Grafana's front end sets both, with a data source of version 2.3.
  const bool as_set_up = asked.show_query && asked.global_annotations;
  std::vector<QuerySpec> queries = asked.queries;
  std::vector<QuerySpec>& specs = plan.specs_;
  for (QuerySpec& query : queries) {
    const bool dragons = HasFormOfDragons(query);
    std::optional<AliasQuery> alias = AliasQuery::Of(query);
    if (alias || dragons) {
      const Result<std::vector<Series>> own =
          co_await Ask(series, &StepSeries::ListSeries, query.metric, size_t{1});
      const bool there = !own.ok() || !own->empty();
      if (there) alias.reset();
      const bool added = own.ok() && !own->empty() && own->front().metric.help == kHelpOfAddData;
      if (dragons && (alias || added)) {
        GroupAsDragon(query);
        if (alias) alias = AliasQuery::Of(query);
      }
    }
    plan.may_be_absent_.push_back(dragons && (alias || as_set_up));
    if (alias) {
      specs.insert(specs.end(), alias->specs().begin(), alias->specs().end());
    } else {
      specs.push_back(query);
    }
    plan.parts_.push_back(std::move(alias));
  }
  plan.queries_ = std::move(queries);
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

Task<Result<std::vector<Series>>> ListSeriesAndAliases(const Context& context, std::string metric,
                                                       size_t limit) {
  Result<std::vector<Series>> real = co_await ListRecordedSeries(context, metric, limit);
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
      co_await ListRecordedSeries(context, std::string(alias->metric()), limit);
  if (!from.ok()) co_return from;
  std::vector<Series> all = AliasSeries(*from);
  std::erase_if(all, [&](const Series& one) { return one.metric.name != metric; });
  co_return all;
}

}  // namespace sonde::web
