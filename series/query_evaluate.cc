#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <new>
#include <utility>

#include "series/aggregate.h"
#include "series/group_values.h"
#include "series/query.h"
#include "series/query_part.h"
#include "series/query_steps.h"

namespace sonde {

using namespace query_steps;

namespace {

constexpr double kCounterEnd = 9223372036854775807.0;  // 2^63 - 1: OpenTSDB's default

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

}  // namespace

std::vector<Point> ApplyDownsample(const std::vector<Point>& points, const Downsample& how,
                                   Nanos start, Nanos end) {
  if (how.interval == 0) return DownsampleAll(points, how.function, start, end);
  const double filler = how.fill == Downsample::Fill::kZero ? 0.0 : std::nan("");
  const bool fill = how.fill != Downsample::Fill::kNone;
  // Buckets are aligned to the epoch; the first is the first that starts within the range.
  const auto bucket_of = [&](Nanos time) { return time - time % how.interval; };
  Nanos bucket = bucket_of(start + how.interval - 1);
  auto at = std::lower_bound(points.begin(), points.end(), bucket,
                             [](const Point& p, Nanos t) { return p.time < t; });
  std::vector<Point> out;
  Accumulator values(how.function);
  while (true) {
    if (!fill && at != points.end()) bucket = bucket_of(at->time);
    if (bucket > end || (!fill && at == points.end())) return out;
    const bool empty = at == points.end() || at->time - bucket >= how.interval;
    values.Clear();
    for (; at != points.end() && at->time - bucket < how.interval; ++at) values.Add(at->value);
    out.push_back({bucket, empty ? filler : values.Get()});
    bucket += how.interval;
  }
}

std::vector<Point> ApplyRate(const std::vector<Point>& points, const RateOptions& how) {
  std::vector<Point> out;
  for (size_t i = 1; i < points.size(); ++i) {
    const Point& before = points[i - 1];
    const Point& now = points[i];
    const double seconds = Seconds(before.time, now.time);
    double difference = now.value - before.value;
    if (how.counter && difference < 0) {
      if (how.drop_resets) continue;
      difference = (how.counter_max > 0 ? how.counter_max : kCounterEnd) - before.value + now.value;
      if (how.reset_value > 0 && difference / seconds > how.reset_value) difference = 0;
    }
    out.push_back({now.time, difference / seconds});
  }
  return out;
}

namespace query_steps {

bool Cursor::MoveTo(Nanos time) {
  if (points_.empty() || time < points_.front().time || time > points_.back().time) return false;
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
  std::erase_if(points, [&](const Point& p) {
    return p.time < range.first || p.time > range.last || std::isnan(p.value);
  });
  const auto earlier = [](const Point& a, const Point& b) { return a.time < b.time; };
  if (!std::is_sorted(points.begin(), points.end(), earlier)) {
    std::stable_sort(points.begin(), points.end(), earlier);
  }
  // The last write for a time wins.
  const auto same = [](const Point& a, const Point& b) { return a.time == b.time; };
  points.erase(points.begin(), std::unique(points.rbegin(), points.rend(), same).base());
  return points;
}

std::vector<Point> Prepare(std::vector<Point> points, const QuerySpec& spec) {
  std::vector<Point> prepared = Within(std::move(points), DataRange(spec));
  if (prepared.empty()) return prepared;
  if (spec.downsample) {
    const bool all = spec.downsample->interval == 0;
    const TimeRange range = all ? TimeRange{spec.start, spec.end} : DataRange(spec);
    prepared = ApplyDownsample(prepared, *spec.downsample, range.first, range.last);
  }
  if (spec.rate) prepared = ApplyRate(prepared, spec.rate_options);
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

std::vector<Point> Aggregate(const std::vector<std::vector<Point>>& series, Aggregator aggregator,
                             Between between, Nanos start, Nanos end) {
  const std::vector<Nanos> times = UnionOfTimes(series, start, end);
  GroupValues values(aggregator, times.size());
  for (const std::vector<Point>& points : series) {
    Cursor cursor(points, between);
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
    if (filter.group_by) keys.push_back(filter.key);
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

QueryResult Describe(const QuerySpec& spec, const std::vector<const Tags*>& group) {
  QueryResult result;
  result.metric = spec.metric;
  std::map<std::string, std::pair<std::string, size_t>> keys;  // key -> value, series that have it
  for (const Tags* tags : group) {
    for (const auto& [key, value] : tags->pairs()) {
      auto& [first, equal] = keys.try_emplace(key, value, 0).first->second;
      if (first == value) ++equal;
    }
  }
  for (const auto& [key, value] : keys) {
    if (value.second == group.size()) {
      result.tags.Set(key, value.first);
    } else {
      result.aggregate_tags.push_back(key);
    }
  }
  return result;
}

}  // namespace query_steps

Result<std::vector<QueryResult>> Evaluate(const QuerySpec& spec,
                                          const std::vector<SeriesData>& series) {
  try {
    SONDE_RETURN_IF_ERROR(CheckQuery(spec));
    const Result<SeriesFilter> filter = SeriesFilter::Make(spec);
    if (!filter.ok()) return filter.status();
    std::vector<SeriesData> matching;
    for (const SeriesData& s : series) {
      if (filter->Matches(s.series)) matching.push_back(s);
    }
    const bool integers = !spec.downsample && !spec.rate && spec.aggregator != Aggregator::kNone &&
                          std::any_of(matching.begin(), matching.end(),
                                      [](const auto& s) { return !s.integers.empty(); });
    if (integers) return EvaluateIntegers(spec, std::move(matching));
    const Result<QueryPart> part = EvaluatePart(spec, std::move(matching), nullptr);
    if (!part.ok()) return part.status();
    return FinishPart(spec, *part);
  } catch (const std::bad_alloc&) {
    return Status(Code::kLimit,
                  "query of '" + spec.metric + "': no memory; ask for less, or downsample");
  }
}

}  // namespace sonde
