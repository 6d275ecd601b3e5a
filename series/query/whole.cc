// Groups that are aggregated from all of their series at once: for aggregators that need all
// values, and for whole numbers.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "series/query/aggregate.h"
#include "series/query/steps.h"

namespace sonde::query_steps {
namespace {

struct Whole {
  Nanos time;
  int64_t value;
};

// A series of whole numbers between two of its points.
int64_t GuessInteger(const Whole& a, const Whole& b, Nanos time, Between between) {
  switch (between) {
    case Between::kZero:
      return 0;
    case Between::kPrevious:
      return a.value;
    case Between::kLargest:
      return std::numeric_limits<int64_t>::max();
    case Between::kSmallest:
      return std::numeric_limits<int64_t>::min();
    case Between::kLine:
      break;
  }
  const Wide rise = static_cast<Wide>(b.value) - a.value;
  const Wide part = static_cast<Wide>(time - a.time) * rise / (b.time - a.time);
  return static_cast<int64_t>(a.value + part);  // between the two
}

class IntegerCursor {
 public:
  IntegerCursor(const std::vector<Point>& points, const std::vector<bool>& integers,
                const LargeIntegers& large, Between between)
      : points_(points),
        integers_(integers),
        large_(large),
        between_(between),
        cursor_(points, between) {}

  // To a time not before the last one. Whether the series takes part there.
  bool MoveTo(Nanos time) { return takes_part_ = cursor_.MoveTo(time); }
  bool takes_part() const { return takes_part_; }
  double value() const { return cursor_.value(); }
  // Whether no point that decides on the value there is a fraction: the points around the time, or
  // before the series begins its first point.
  bool IsInteger(Nanos time) const {
    if (points_.empty() || time > points_.back().time) return true;
    if (integers_.empty()) return false;
    const size_t at = cursor_.at();
    if (!takes_part_) return integers_[at];
    return integers_[at] && (at + 1 == points_.size() || integers_[at + 1]);
  }
  // Where IsInteger.
  int64_t Integer(Nanos time) const {
    if (cursor_.at_point()) return At(cursor_.at()).value;
    return GuessInteger(At(cursor_.at()), At(cursor_.at() + 1), time, between_);
  }

 private:
  Whole At(size_t i) const { return {points_[i].time, IntegerOf(points_[i], large_).value_or(0)}; }

  const std::vector<Point>& points_;
  const std::vector<bool>& integers_;
  const LargeIntegers& large_;
  const Between between_;
  Cursor cursor_;
  bool takes_part_ = false;
};

// Kept from one time to the next.
struct Values {
  std::vector<double> all;
  std::vector<int64_t> whole;  // the same, if they are
};

// Puts the value at `time` into the result.
void AddValueAt(Nanos time, Aggregator aggregator, std::vector<IntegerCursor>& cursors,
                Values& values, QueryResult& result) {
  values.all.clear();
  values.whole.clear();
  bool integers = true;
  for (IntegerCursor& cursor : cursors) {
    cursor.MoveTo(time);
    integers = integers && cursor.IsInteger(time);
  }
  for (const IntegerCursor& cursor : cursors) {
    if (!cursor.takes_part()) continue;
    if (integers) values.whole.push_back(cursor.Integer(time));
    values.all.push_back(integers ? static_cast<double>(values.whole.back()) : cursor.value());
  }
  if (!integers) return result.points.push_back({time, Fold(aggregator, values.all)});
  const std::optional<int64_t> exact = FoldIntegers(aggregator, values.whole);
  if (exact && IsLarge(*exact)) result.large.emplace(time, *exact);
  result.points.push_back(
      {time, exact ? static_cast<double>(*exact) : FoldCutOff(aggregator, values.all)});
}

// As Within, also for the flags that go with the points.
void KeepWithin(SeriesData& data, const TimeRange& range) {
  std::vector<std::pair<Point, bool>> all;
  all.reserve(data.points.size());
  for (size_t i = 0; i < data.points.size(); ++i) {
    const Point& p = data.points[i];
    if (p.time < range.first || p.time > range.last || std::isnan(p.value)) continue;
    all.emplace_back(p, i < data.integers.size() && data.integers[i]);
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.first.time < b.first.time; });
  data.points.clear();
  data.integers.clear();
  for (size_t i = 0; i < all.size(); ++i) {
    if (i + 1 < all.size() && all[i + 1].first.time == all[i].first.time) continue;
    data.points.push_back(all[i].first);
    data.integers.push_back(all[i].second);
  }
}

}  // namespace

bool KeepsSeries(const QuerySpec& spec) {
  return spec.aggregator == Aggregator::kNone || NeedsAllValues(spec.aggregator);
}

QueryResult AggregateWhole(const QuerySpec& spec, const WholeGroup& group) {
  static const std::vector<bool> kNone;
  QueryResult result = Describe(spec, group.tags);
  static const LargeIntegers kNoneLarge;
  std::vector<IntegerCursor> cursors;
  for (size_t i = 0; i < group.points.size(); ++i) {
    cursors.emplace_back(group.points[i], group.integers.empty() ? kNone : group.integers[i],
                         group.large.empty() ? kNoneLarge : group.large[i], BetweenPoints(spec));
  }
  Values values;
  for (const Nanos time : UnionOfTimes(group.points, spec.start, spec.end)) {
    AddValueAt(time, spec.aggregator, cursors, values, result);
  }
  return result;
}

std::vector<QueryResult> EvaluateIntegers(const QuerySpec& spec, std::vector<SeriesData> series) {
  const TimeRange range = DataRange(spec);
  const std::vector<std::string> keys = GroupKeys(spec);
  for (SeriesData& data : series) KeepWithin(data, range);
  std::sort(series.begin(), series.end(),
            [](const SeriesData& a, const SeriesData& b) { return a.series.tags < b.series.tags; });
  std::map<std::vector<std::string>, WholeGroup> groups;
  for (SeriesData& data : series) {
    if (data.points.empty()) continue;
    WholeGroup& group = groups[GroupOf(data.series.tags, keys)];
    group.tags.push_back(&data.series.tags);
    group.points.push_back(std::move(data.points));
    group.integers.push_back(std::move(data.integers));
    group.large.push_back(std::move(data.large));
  }
  std::vector<QueryResult> results;
  for (const auto& [place, group] : groups) {
    QueryResult result = AggregateWhole(spec, group);
    if (!result.points.empty()) results.push_back(std::move(result));
  }
  return results;
}

}  // namespace sonde::query_steps
