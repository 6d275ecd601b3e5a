#include <algorithm>
#include <cmath>
#include <map>
#include <new>
#include <utility>

#include "series/aggregate.h"
#include "series/query.h"
#include "series/query_steps.h"
#include "series/reduced.h"

namespace sonde {
namespace {

using namespace query_steps;

// Of one series as it was before reduction: what each statistic's points are.
using Stats = std::map<std::string, const std::vector<Point>*, std::less<>>;

bool DropsTag(const TagFilter& filter) {
  return filter.key == "host" || filter.key == "task" || filter.key == kStatTag;
}

bool IsPercentile(Aggregator aggregator) { return PercentileOf(aggregator) > 0; }

// The statistic that the aggregator combines; of percentiles it is already the answer.
std::string StatOf(const QuerySpec& spec) {
  if (IsPercentile(spec.aggregator)) {
    return std::string(spec.rate ? kRateStat : "").append(ToString(spec.aggregator));
  }
  switch (Basis(spec.aggregator)) {
    case Aggregator::kMin:
      return "min";
    case Aggregator::kMax:
      return "max";
    case Aggregator::kCount:
      return "count";
    default:
      return "sum";
  }
}

const std::vector<Point>& Find(const Stats& stats, std::string_view stat) {
  static const std::vector<Point> kNothing;
  const auto at = stats.find(stat);
  return at == stats.end() ? kNothing : *at->second;
}

// How many raw series stand behind each of `values`: the mean count of the bucket. Where there is
// no value there is no weight.
std::vector<Point> Weights(const std::vector<Point>& values, const std::vector<Point>& counts,
                           const QuerySpec& spec) {
  QuerySpec mean = spec;
  mean.rate = false;
  if (mean.downsample) mean.downsample->function = Aggregator::kAvg;
  const std::vector<Point> known = Prepare(counts, mean);
  std::vector<Point> weights;
  auto at = known.begin();
  for (const Point& p : values) {
    while (at != known.end() && at->time < p.time) ++at;
    const bool has = at != known.end() && at->time == p.time && !std::isnan(p.value);
    weights.push_back({p.time, has ? at->value : std::nan("")});
  }
  return weights;
}

// The points of a group of one: rates are recorded as such.
std::vector<Point> Recorded(QuerySpec spec, const Stats& stats) {
  std::string stat = StatOf(spec);
  spec.rate = false;
  std::vector<Point> points = Prepare(Find(stats, stat), spec);
  std::erase_if(points, [&](const Point& p) { return p.time < spec.start || p.time > spec.end; });
  return points;
}

// The points of one group, from the reduced series in it.
std::vector<Point> Combine(const QuerySpec& spec, const std::vector<const Stats*>& group) {
  const bool weighted =
      spec.aggregator == Aggregator::kAvg || spec.aggregator == Aggregator::kCount;
  std::vector<std::vector<Point>> values;
  std::vector<std::vector<Point>> weights;
  for (const Stats* stats : group) {
    values.push_back(Prepare(Find(*stats, StatOf(spec)), spec));
    if (weighted) weights.push_back(Weights(values.back(), Find(*stats, "count"), spec));
  }
  if (!weighted) {
    return Aggregate(values, spec.aggregator, BetweenPoints(spec), spec.start, spec.end);
  }
  std::vector<Point> total =
      Aggregate(weights, Aggregator::kSum, Between::kPrevious, spec.start, spec.end);
  if (spec.aggregator == Aggregator::kCount) {
    for (Point& p : total) p.value = std::isnan(p.value) ? 0 : p.value;
    return total;
  }
  // Values and weights have the same times.
  std::vector<Point> sums =
      Aggregate(values, Aggregator::kSum, BetweenPoints(spec), spec.start, spec.end);
  for (size_t i = 0; i < sums.size(); ++i) sums[i].value /= total[i].value;
  return sums;
}

Status ManySeries(const QuerySpec& spec) {
  return {Code::kUnsupported, "query of '" + spec.metric +
                                  "': its percentiles are recorded for each series, and this "
                                  "asks for those of several together; ask the nodes"};
}

Result<std::vector<QueryResult>> EvaluateChecked(const QuerySpec& spec, const SeriesFilter& filter,
                                                 const std::vector<SeriesData>& reduced) {
  std::map<Tags, Stats> series;
  for (const SeriesData& s : reduced) {
    const std::string* stat = s.series.tags.Find(kStatTag);
    if (stat == nullptr || !filter.Matches(s.series)) continue;
    Tags tags = s.series.tags;
    tags.Erase(kStatTag);
    series[tags][*stat] = &s.points;
  }
  SONDE_RETURN_IF_ERROR(CheckFilled(spec, series.size()));
  const std::vector<std::string> keys = GroupKeys(spec);
  std::map<std::vector<std::string>, std::vector<std::pair<const Tags*, const Stats*>>> groups;
  for (const auto& [tags, stats] : series) {
    if (Within(Find(stats, StatOf(spec)), DataRange(spec)).empty()) continue;
    groups[GroupOf(tags, keys)].emplace_back(&tags, &stats);
  }
  std::vector<QueryResult> results;
  for (const auto& [values, members] : groups) {
    std::vector<const Tags*> tags;
    std::vector<const Stats*> stats;
    for (const auto& [t, s] : members) {
      tags.push_back(t);
      stats.push_back(s);
    }
    const bool recorded = IsPercentile(spec.aggregator);
    if (recorded && stats.size() > 1) return ManySeries(spec);
    QueryResult result = Describe(spec, tags);
    result.points = recorded ? Recorded(spec, *stats.front()) : Combine(spec, stats);
    if (!result.points.empty()) results.push_back(std::move(result));
  }
  return results;
}

}  // namespace

bool AnswersFromReduced(const QuerySpec& spec) {
  if (spec.explicit_tags || std::any_of(spec.filters.begin(), spec.filters.end(), DropsTag)) {
    return false;
  }
  // A counter's reset shows in the series alone, not in a sum.
  if (spec.rate && spec.rate_options.counter) return false;
  const bool zeros = spec.downsample && spec.downsample->fill == Downsample::Fill::kZero;
  const auto downsampled_by = [&](std::initializer_list<Aggregator> functions) {
    return !spec.downsample || std::find(functions.begin(), functions.end(),
                                         spec.downsample->function) != functions.end();
  };
  switch (Basis(spec.aggregator)) {
    case Aggregator::kSum:
      return downsampled_by({Aggregator::kAvg, Aggregator::kSum});
    case Aggregator::kAvg:
      // How many series a filled zero stands for is not known.
      return downsampled_by({Aggregator::kAvg, Aggregator::kSum}) && !zeros;
    case Aggregator::kMin:
      return downsampled_by({Aggregator::kMin}) && !spec.rate;
    case Aggregator::kMax:
      return downsampled_by({Aggregator::kMax}) && !spec.rate;
    case Aggregator::kCount:
      return !zeros;
    default:
      return false;
  }
}

bool SpreadAnswers(const QuerySpec& spec, Nanos period) {
  if (spec.explicit_tags || std::any_of(spec.filters.begin(), spec.filters.end(), DropsTag)) {
    return false;
  }
  if (spec.rate && spec.rate_options.counter) return false;
  if (spec.downsample) {
    const Downsample& how = *spec.downsample;
    if (how.interval <= 0 || how.interval > period || !KeepsOneValue(how.function) ||
        how.fill == Downsample::Fill::kZero) {
      return false;
    }
  }
  return std::find(kSpreadNames.begin(), kSpreadNames.end(), ToString(spec.aggregator)) !=
         kSpreadNames.end();
}

bool ReducedNeeds(const QuerySpec& spec, const Series& reduced) {
  if (reduced.metric.name != spec.metric) return false;
  const std::string* stat = reduced.tags.Find(kStatTag);
  if (stat == nullptr) return false;
  return *stat == StatOf(spec) || (spec.aggregator == Aggregator::kAvg && *stat == "count");
}

Result<std::vector<QueryResult>> EvaluateReduced(const QuerySpec& spec,
                                                 const std::vector<SeriesData>& reduced) {
  if (!AnswersFromReduced(spec) && !SpreadAnswers(spec, kMaxQueryTime)) {
    return Status(Code::kInvalid,
                  "query of '" + spec.metric + "': reduced series do not answer it; ask the nodes");
  }
  try {
    SONDE_RETURN_IF_ERROR(CheckQuery(spec));
    const Result<SeriesFilter> filter = SeriesFilter::Make(spec);
    if (!filter.ok()) return filter.status();
    return EvaluateChecked(spec, *filter, reduced);
  } catch (const std::bad_alloc&) {
    return Status(Code::kLimit,
                  "query of '" + spec.metric + "': no memory; ask for less, or downsample");
  }
}

}  // namespace sonde
