#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <new>
#include <optional>
#include <set>
#include <utility>

#include "series/query/aggregate.h"
#include "series/query/group_values.h"
#include "series/query/part.h"
#include "series/query/query.h"
#include "series/query/steps.h"

namespace sonde {

using namespace query_steps;

namespace {

double Seconds(Nanos from, Nanos to) {
  return static_cast<double>(static_cast<uint64_t>(to) - static_cast<uint64_t>(from)) / kSecond;
}

std::vector<Point> DownsampleAll(const std::vector<Point>& points, Aggregator function, Nanos start,
                                 Nanos end) {
  Accumulator bucket(function);
  bool any = false;
  for (const Point& p : points) {
    if (p.time < start || p.time >= end) continue;
    bucket.Add(p.value);
    any = true;
  }
  if (!any) return {};
  return {{start, bucket.Get()}};
}

// Where buckets begin.
class Buckets {
 public:
  explicit Buckets(const Downsample& how)
      : interval_(how.interval), calendar_(how.calendar.get()) {}

  // The first bucket that starts at `time` or later.
  Nanos From(Nanos time) const {
    if (calendar_ == nullptr) return Of(time + interval_ - 1);
    const auto& edges = calendar_->edges;
    return At(std::lower_bound(edges.begin(), edges.end(), time));
  }
  // The bucket that holds `time`; there is one.
  Nanos Of(Nanos time) const {
    return calendar_ == nullptr ? time - time % interval_ : calendar_->BucketOf(time);
  }
  Nanos After(Nanos bucket) const {
    if (calendar_ == nullptr) return bucket + interval_;
    const auto& edges = calendar_->edges;
    return At(std::upper_bound(edges.begin(), edges.end(), bucket));
  }

 private:
  Nanos At(std::vector<Nanos>::const_iterator edge) const {
    return edge == calendar_->edges.end() ? std::numeric_limits<Nanos>::max() : *edge;
  }

  const Nanos interval_;
  const Calendar* const calendar_;
};

double Difference(const Point& before, const Point& now, const LargeIntegers& large) {
  if (large.empty()) return now.value - before.value;
  const std::optional<int64_t> a = query_steps::IntegerOf(before, large);
  const std::optional<int64_t> b = query_steps::IntegerOf(now, large);
  if (!a || !b) return now.value - before.value;
  return static_cast<double>(static_cast<Wide>(*b) - *a);
}

}  // namespace

std::vector<Point> ApplyDownsample(const std::vector<Point>& points, const Downsample& how,
                                   Nanos start, Nanos end) {
  if (how.interval == 0) return DownsampleAll(points, how.function, start, end);
  const double filler = how.fill == Downsample::Fill::kZero ? 0.0 : std::nan("");
  const bool fill = how.fill != Downsample::Fill::kNone;
  const Buckets buckets(how);
  Nanos bucket = buckets.From(start);
  auto at = std::lower_bound(points.begin(), points.end(), bucket,
                             [](const Point& p, Nanos t) { return p.time < t; });
  std::vector<Point> out;
  Accumulator values(how.function);
  while (true) {
    if (!fill && at != points.end()) bucket = buckets.Of(at->time);
    if (bucket > end || (!fill && at == points.end())) return out;
    const Nanos next = buckets.After(bucket);
    const bool empty = at == points.end() || at->time >= next;
    values.Clear();
    for (; at != points.end() && at->time < next; ++at) values.Add(at->value);
    out.push_back({bucket, empty ? filler : values.Get()});
    bucket = next;
  }
}

std::vector<Point> ApplyRate(const std::vector<Point>& points, const RateOptions& how,
                             const LargeIntegers& large) {
  std::vector<Point> out;
  for (size_t i = 1; i < points.size(); ++i) {
    const Point& before = points[i - 1];
    const Point& now = points[i];
    const double seconds = Seconds(before.time, now.time);
    double difference = Difference(before, now, large);
    if (how.counter && difference < 0) {
      if (how.drop_resets) continue;
      difference = how.counter_max - before.value + now.value;
      if (how.reset_value > 0 && difference / seconds > how.reset_value) difference = 0;
    }
    out.push_back({now.time, difference / seconds});
  }
  return out;
}

namespace query_steps {

bool Cursor::MoveTo(Nanos time) {
  if (points_.empty() || time < points_.front().time) return false;
  if (time > points_.back().time) {
    at_point_ = false;
    value_ = held_.value_or(points_.back().value);
    return holds_;
  }
  while (at_ + 1 < points_.size() && points_[at_ + 1].time <= time) ++at_;
  at_point_ = points_[at_].time == time;
  value_ = at_point_ ? points_[at_].value : Guess(time);
  return true;
}

double Cursor::Guess(Nanos time) const {
  const Point& a = points_[at_];
  const Point& b = points_[at_ + 1];
  switch (between_) {
    case Between::kZero:
      return 0;
    case Between::kPrevious:
      return a.value;
    case Between::kLargest:
      return std::numeric_limits<double>::max();
    case Between::kSmallest:
      return std::numeric_limits<double>::lowest();
    case Between::kLine:
      break;
  }
  return a.value + Seconds(a.time, time) * (b.value - a.value) / Seconds(a.time, b.time);
}

Between BetweenPoints(const QuerySpec& spec) {
  if (spec.rate) return Between::kPrevious;
  switch (spec.aggregator) {
    case Aggregator::kCount:
    case Aggregator::kZimsum:
    case Aggregator::kSquareSum:
    case Aggregator::kFirst:
    case Aggregator::kLast:
      return Between::kZero;
    case Aggregator::kMimmin:
      return Between::kLargest;
    case Aggregator::kMimmax:
      return Between::kSmallest;
    case Aggregator::kPfsum:
      return Between::kPrevious;
    default:
      return Between::kLine;
  }
}

std::vector<Point> Within(std::vector<Point> points, const TimeRange& range) {
  const auto earlier = [](const Point& a, const Point& b) { return a.time < b.time; };
  // Points from stores need no change.
  bool good = true;
  Nanos before = range.first - 1;
  for (const Point& p : points) {
    good = good && p.time > before && p.time <= range.last && !std::isnan(p.value);
    before = p.time;
  }
  if (good) return points;
  std::erase_if(points, [&](const Point& p) {
    return p.time < range.first || p.time > range.last || std::isnan(p.value);
  });
  if (!std::is_sorted(points.begin(), points.end(), earlier)) {
    std::stable_sort(points.begin(), points.end(), earlier);
  }
  // The last write for a time wins.
  const auto same = [](const Point& a, const Point& b) { return a.time == b.time; };
  points.erase(points.begin(), std::unique(points.rbegin(), points.rend(), same).base());
  return points;
}

Status CheckFilled(const QuerySpec& spec, size_t series) {
  constexpr size_t kMaxFilledPoints = 16u << 20;  // 256 MiB
  if (!spec.downsample || spec.downsample->fill == Downsample::Fill::kNone) return {};
  const Downsample& how = *spec.downsample;
  if (how.calendar == nullptr && how.interval == 0) return {};
  const TimeRange range = DataRange(spec);
  const auto buckets = how.calendar != nullptr
                           ? how.calendar->edges.size() - 1
                           : static_cast<size_t>((range.last - range.first) / how.interval + 1);
  if (series * buckets <= kMaxFilledPoints) return {};
  return {Code::kLimit,
          fmt::format("query of '{}': filling would make {} points of {} series, more than {}; "
                      "choose a longer interval, a shorter range or fewer series",
                      spec.metric.substr(0, 64), series * buckets, series, kMaxFilledPoints)};
}

std::optional<int64_t> IntegerOf(const Point& point, const LargeIntegers& large) {
  const auto at = large.find(point.time);
  if (at != large.end()) return at->second;
  const bool whole = std::fabs(point.value) <= static_cast<double>(kLargestExact) &&
                     std::trunc(point.value) == point.value;
  return whole ? std::optional(static_cast<int64_t>(point.value)) : std::nullopt;
}

std::vector<Point> Prepare(std::vector<Point> points, const QuerySpec& spec,
                           const LargeIntegers& large) {
  std::vector<Point> prepared = Within(std::move(points), DataRange(spec));
  if (prepared.empty()) return prepared;
  if (spec.downsample) {
    const bool all = spec.downsample->interval == 0;
    const TimeRange range = all ? TimeRange{spec.start, spec.end} : DataRange(spec);
    prepared = ApplyDownsample(prepared, *spec.downsample, range.first, range.last);
  }
  // Buckets of whole numbers are fractions.
  const LargeIntegers none;
  if (spec.rate) prepared = ApplyRate(prepared, spec.rate_options, spec.downsample ? none : large);
  return prepared;
}

std::vector<Nanos> UnionOfTimes(const std::vector<std::vector<Point>>& series, Nanos start,
                                Nanos end) {
  std::vector<Nanos> times;
  for (const auto& points : series) {
    const size_t middle = times.size();
    for (const Point& p : points) {
      if (p.time >= start && p.time <= end) times.push_back(p.time);
    }
    std::inplace_merge(times.begin(), times.begin() + static_cast<ptrdiff_t>(middle), times.end());
    times.erase(std::unique(times.begin(), times.end()), times.end());
  }
  return times;
}

namespace {

// Whether a single value stays as it is; for sums except for the sign of a zero.
bool StaysAlone(Aggregator aggregator) {
  switch (aggregator) {
    case Aggregator::kSum:
    case Aggregator::kZimsum:
    case Aggregator::kPfsum:
    case Aggregator::kMin:
    case Aggregator::kMax:
    case Aggregator::kMimmin:
    case Aggregator::kMimmax:
      return true;
    default:
      return false;
  }
}

std::vector<Point> Alone(const std::vector<Point>& points, Aggregator aggregator, Nanos start,
                         Nanos end) {
  const bool sum = Basis(aggregator) == Aggregator::kSum;
  std::vector<Point> out;
  out.reserve(points.size());
  for (const Point& p : points) {
    if (p.time >= start && p.time <= end) out.push_back({p.time, sum ? p.value + 0.0 : p.value});
  }
  return out;
}

}  // namespace

std::vector<Point> Aggregate(const std::vector<std::vector<Point>>& series, Aggregator aggregator,
                             Between between, Nanos start, Nanos end, bool holds) {
  if (series.size() == 1 && StaysAlone(aggregator)) {
    return Alone(series.front(), aggregator, start, end);
  }
  const std::vector<Nanos> times = UnionOfTimes(series, start, end);
  GroupValues values(aggregator, times.size());
  for (const std::vector<Point>& points : series) {
    Cursor cursor(points, between, holds);
    for (size_t i = 0; i < times.size(); ++i) {
      if (cursor.MoveTo(times[i])) values.Add(i, cursor.value());
    }
  }
  std::vector<Point> out;
  out.reserve(times.size());
  for (size_t i = 0; i < times.size(); ++i) out.push_back({times[i], values.Get(i)});
  return out;
}

std::vector<std::string> GroupKeys(const QuerySpec& spec) {
  std::vector<std::string> keys;
  for (const TagFilter& filter : spec.filters) {
    if (filter.group_by && filter.type != TagFilter::Type::kNotKey) keys.push_back(filter.key);
  }
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

std::vector<std::string> GroupOf(const Tags& tags, const std::vector<std::string>& keys) {
  std::vector<std::string> values;
  for (const std::string& key : keys) {
    const std::string* value = tags.Find(key);
    values.push_back(value == nullptr ? "" : *value);
  }
  return values;
}

bool IsSeparateBy(const QuerySpec& spec, std::string_view key) {
  if (spec.aggregator == Aggregator::kNone) return true;
  const std::vector<std::string> keys = GroupKeys(spec);
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

void SortResults(const QuerySpec& spec, std::vector<QueryResult>& results) {
  if (spec.aggregator == Aggregator::kNone)
    return std::sort(results.begin(), results.end(), Before);
  const std::vector<std::string> keys = GroupKeys(spec);
  std::sort(results.begin(), results.end(), [&](const QueryResult& a, const QueryResult& b) {
    return GroupOf(a.tags, keys) < GroupOf(b.tags, keys);
  });
}

QueryResult Describe(const QuerySpec& spec, const std::vector<const Tags*>& group) {
  QueryResult result;
  result.metric = spec.metric;
  std::map<std::string, std::set<std::string>> values;  // of each key
  for (const Tags* tags : group) {
    for (const auto& [key, value] : tags->pairs()) values[key].insert(value);
  }
  for (const auto& [key, all] : values) {
    if (all.size() == 1) {
      result.tags.Set(key, *all.begin());
    } else {
      result.aggregate_tags.push_back(key);
    }
  }
  return result;
}

bool Before(const QueryResult& a, const QueryResult& b) {
  if (a.tags != b.tags) return a.tags < b.tags;
  const auto less = [](const Point& p, const Point& q) {
    return std::pair(p.time, std::bit_cast<uint64_t>(p.value)) <
           std::pair(q.time, std::bit_cast<uint64_t>(q.value));
  };
  return std::lexicographical_compare(a.points.begin(), a.points.end(), b.points.begin(),
                                      b.points.end(), less);
}

std::vector<QueryResult> EvaluateAlone(const QuerySpec& spec, std::vector<SeriesData> series) {
  std::vector<QueryResult> results;
  for (SeriesData& s : series) {
    const bool counts = Counts(s.series.metric);
    std::vector<Point> points = counts ? PrepareCounter(std::move(s.points), spec)
                                       : Prepare(std::move(s.points), spec, s.large);
    const auto earlier = [](const Point& p, Nanos t) { return p.time < t; };
    points.erase(std::lower_bound(points.begin(), points.end(), spec.end + 1, earlier),
                 points.end());
    points.erase(points.begin(),
                 std::lower_bound(points.begin(), points.end(), spec.start, earlier));
    if (points.empty()) continue;
    if (counts) FillBuckets(spec, points);
    LargeIntegers large;
    if (!spec.downsample && !spec.rate) large = std::move(s.large);
    results.push_back(
        {spec.metric, std::move(s.series.tags), {}, std::move(points), std::move(large)});
  }
  std::sort(results.begin(), results.end(), Before);
  return results;
}

}  // namespace query_steps

Result<std::vector<QueryResult>> Evaluate(const QuerySpec& spec, std::vector<SeriesData> series) {
  try {
    SONDE_RETURN_IF_ERROR(CheckQuery(spec));
    const Result<SeriesFilter> filter = SeriesFilter::Make(spec);
    if (!filter.ok()) return filter.status();
    std::erase_if(series, [&](const SeriesData& s) { return !filter->Matches(s.series); });
    SONDE_RETURN_IF_ERROR(CheckFilled(spec, series.size()));
    const bool integers = !spec.downsample && !spec.rate && spec.aggregator != Aggregator::kNone &&
                          std::any_of(series.begin(), series.end(),
                                      [](const auto& s) { return !s.integers.empty(); });
    if (integers) return EvaluateIntegers(spec, std::move(series));
    if (spec.aggregator == Aggregator::kNone) return EvaluateAlone(spec, std::move(series));
    const Result<QueryPart> part = EvaluatePart(spec, std::move(series), nullptr);
    if (!part.ok()) return part.status();
    return FinishPart(spec, *part);
  } catch (const std::bad_alloc&) {
    return Status(Code::kLimit,
                  "query of '" + spec.metric + "': no memory; ask for less, or downsample");
  }
}

}  // namespace sonde
