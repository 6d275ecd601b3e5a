#include "series/store/reduced.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <new>
#include <utility>

#include "series/query/aggregate.h"
#include "series/query/counter_total.h"
#include "series/query/part.h"
#include "series/query/query.h"
#include "series/query/steps.h"

namespace sonde {
namespace {

using namespace query_steps;

// One series as it was before reduction: the points of each statistic.
struct Stats {
  bool counts = false;
  std::map<std::string, std::vector<Point>, std::less<>> points;
};

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
  const auto at = stats.points.find(stat);
  return at == stats.points.end() ? kNothing : at->second;
}

// Rows of fewer nodes than there were before are made whole.
void CountOn(std::span<const PresenceRun> presence, Stats& stats) {
  const std::vector<Point> counts = Find(stats, "count");
  if (!stats.counts || counts.empty()) return;
  constexpr std::pair<std::string_view, double Reduced::*> kParts[] = {{"count", &Reduced::count},
                                                                       {"sum", &Reduced::sum},
                                                                       {"min", &Reduced::min},
                                                                       {"max", &Reduced::max}};
  CounterRows rows;
  RowNodes nodes;
  std::array<size_t, std::size(kParts)> next{};
  for (const Point& row : counts) {
    Reduced value;
    std::array<double*, std::size(kParts)> places{};
    for (size_t i = 0; i < std::size(kParts); ++i) {
      const auto at = stats.points.find(kParts[i].first);
      if (at == stats.points.end()) continue;
      std::vector<Point>& points = at->second;
      while (next[i] < points.size() && points[next[i]].time < row.time) ++next[i];
      if (next[i] == points.size() || points[next[i]].time != row.time) continue;
      places[i] = &points[next[i]].value;
      value.*kParts[i].second = *places[i];
    }
    value.count = row.value;
    nodes.Changed(presence, row.time);
    const Reduced whole = rows.Add(value, nodes.changes());
    for (size_t i = 0; i < std::size(kParts); ++i) {
      if (places[i] != nullptr) *places[i] = whole.*kParts[i].second;
    }
  }
}

// The smallest value falls when another node comes; no other statistic falls.
std::vector<Point> Prepared(const Stats& stats, std::string_view stat, const QuerySpec& spec) {
  const bool counts = stats.counts && stat != "min";
  return counts ? PrepareRows(Find(stats, stat), spec) : Prepare(Find(stats, stat), spec);
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

// The points of a group of one series: rates are recorded as rates.
std::vector<Point> Recorded(QuerySpec spec, const Stats& stats) {
  std::string stat = StatOf(spec);
  spec.rate = false;
  std::vector<Point> points = Prepare(Find(stats, stat), spec);
  std::erase_if(points, [&](const Point& p) { return p.time < spec.start || p.time > spec.end; });
  return points;
}

bool Count(const std::vector<const Stats*>& group) {
  return std::all_of(group.begin(), group.end(), [](const Stats* stats) { return stats->counts; });
}

// The points of one group, from the reduced series in it.
std::vector<Point> Combine(const QuerySpec& spec, const std::vector<const Stats*>& group) {
  const bool weighted =
      spec.aggregator == Aggregator::kAvg || spec.aggregator == Aggregator::kCount;
  std::vector<std::vector<Point>> values;
  std::vector<std::vector<Point>> weights;
  for (const Stats* stats : group) {
    values.push_back(Prepared(*stats, StatOf(spec), spec));
    if (weighted) weights.push_back(Weights(values.back(), Find(*stats, "count"), spec));
  }
  const bool holds = Count(group) && HoldsCounters(spec);
  const Between between = holds ? BetweenCounts(spec) : BetweenPoints(spec);
  if (!weighted) {
    return Aggregate(values, spec.aggregator, between, spec.start, spec.end, holds);
  }
  std::vector<Point> total =
      Aggregate(weights, Aggregator::kSum, Between::kPrevious, spec.start, spec.end, holds);
  if (spec.aggregator == Aggregator::kCount) {
    for (Point& p : total) p.value = std::isnan(p.value) ? 0 : p.value;
    return total;
  }
  // Values and weights have the same times.
  std::vector<Point> sums =
      Aggregate(values, Aggregator::kSum, between, spec.start, spec.end, holds);
  for (size_t i = 0; i < sums.size(); ++i) sums[i].value /= total[i].value;
  return sums;
}

Status ManySeries(const QuerySpec& spec) {
  return {Code::kUnsupported, "query of '" + spec.metric +
                                  "': its percentiles are recorded for each series, and this "
                                  "asks for those of several together; ask the nodes"};
}

// The matching series, as they were before reduction, with counters made whole.
std::map<Tags, Stats> Gather(const SeriesFilter& filter, const std::vector<SeriesData>& reduced,
                             std::span<const PresenceRun> presence) {
  std::map<Tags, Stats> series;
  for (const SeriesData& s : reduced) {
    const std::string* stat = s.series.tags.Find(kStatTag);
    if (stat == nullptr || !filter.Matches(s.series)) continue;
    Tags tags = s.series.tags;
    tags.Erase(kStatTag);
    Stats& stats = series[tags];
    stats.counts = Counts(s.series.metric);
    stats.points[*stat] = s.points;
  }
  for (auto& [tags, stats] : series) CountOn(presence, stats);
  return series;
}

Result<std::vector<QueryResult>> EvaluateChecked(const QuerySpec& spec, const SeriesFilter& filter,
                                                 const std::vector<SeriesData>& reduced,
                                                 std::span<const PresenceRun> presence) {
  const std::map<Tags, Stats> series = Gather(filter, reduced, presence);
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
    if (result.points.empty()) continue;
    if (!recorded && Count(stats)) FillBuckets(spec, result.points);
    results.push_back(std::move(result));
  }
  return results;
}

}  // namespace

bool AnswersFromReduced(const QuerySpec& spec, bool counts) {
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
      return downsampled_by(
                 {Aggregator::kAvg, Aggregator::kSum, Aggregator::kFirst, Aggregator::kLast}) ||
             (counts && downsampled_by({Aggregator::kMin, Aggregator::kMax}));
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

TimeRange ReducedRange(const QuerySpec& spec, bool counts, Nanos period) {
  constexpr Nanos kTicks = 16;     // a node that is away longer is known to be away
  constexpr Nanos kSlowTicks = 2;  // of what is sampled at every tenth or so
  TimeRange range = DataRange(spec);
  if (counts) range.first -= std::max(kTicks * period, kSlowTicks * kSlowPeriod);
  return range;
}

bool ReducedNeeds(const QuerySpec& spec, const Series& reduced) {
  if (reduced.metric.name != spec.metric) return false;
  const std::string* stat = reduced.tags.Find(kStatTag);
  if (stat == nullptr) return false;
  const bool counts = Counts(reduced.metric) && !IsPercentile(spec.aggregator);
  return *stat == StatOf(spec) ||
         ((spec.aggregator == Aggregator::kAvg || counts) && *stat == "count");
}

Result<std::vector<QueryResult>> EvaluateReduced(const QuerySpec& spec,
                                                 const std::vector<SeriesData>& reduced,
                                                 std::span<const PresenceRun> presence) {
  // Without any series it does not matter.
  const bool counts =
      reduced.empty() || std::any_of(reduced.begin(), reduced.end(),
                                     [](const auto& s) { return Counts(s.series.metric); });
  if (!AnswersFromReduced(spec, counts) && !SpreadAnswers(spec, kMaxQueryTime)) {
    return Status(Code::kInvalid,
                  "query of '" + spec.metric + "': reduced series do not answer it; ask the nodes");
  }
  try {
    SONDE_RETURN_IF_ERROR(CheckQuery(spec));
    const Result<SeriesFilter> filter = SeriesFilter::Make(spec);
    if (!filter.ok()) return filter.status();
    return EvaluateChecked(spec, *filter, reduced, presence);
  } catch (const std::bad_alloc&) {
    return Status(Code::kLimit,
                  "query of '" + spec.metric + "': no memory; ask for less, or downsample");
  }
}

bool ReducedSumsCounters(const QuerySpec& spec) {
  return Basis(spec.aggregator) == Aggregator::kSum && AnswersFromReduced(spec, /*counts=*/true);
}

Result<QueryPart> EvaluateReducedPart(const QuerySpec& spec, const std::vector<SeriesData>& reduced,
                                      std::span<const PresenceRun> presence,
                                      const QueryGrid& grid) {
  SONDE_RETURN_IF_ERROR(CheckQuery(spec));
  const Result<SeriesFilter> filter = SeriesFilter::Make(spec);
  if (!filter.ok()) return filter.status();
  try {
    std::vector<SeriesData> sums;
    for (const auto& [tags, stats] : Gather(*filter, reduced, presence)) {
      SeriesData& sum = sums.emplace_back();
      sum.series.metric.name = spec.metric;
      sum.series.metric.type = stats.counts ? MetricType::kCounter : MetricType::kGauge;
      sum.series.tags = tags;
      sum.points = Find(stats, "sum");
    }
    return EvaluatePart(spec, std::move(sums), &grid);
  } catch (const std::bad_alloc&) {
    return Status(Code::kLimit,
                  "query of '" + spec.metric + "': no memory; ask for less, or downsample");
  }
}

}  // namespace sonde
