// The parts of an evaluation that raw and reduced series share.
//
// Thread safety: functions without state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "series/query/query.h"

namespace sonde {
struct GroupPart;
}

namespace sonde::query_steps {

// The tag that names the step of a series.
inline constexpr std::string_view kJobTag = "job";

// What a series counts for between two of its points: kLargest and kSmallest are the largest and
// the smallest finite number.
enum class Between { kLine, kZero, kPrevious, kLargest, kSmallest };
Between BetweenPoints(const QuerySpec& spec);

// A series as it is walked through time, after downsampling and rate. Keeps a reference to the
// points.
class Cursor {
 public:
  // `holds`: after its last point the series keeps its last value, or `held`: a bucket may have
  // another one than the last of its points.
  Cursor(const std::vector<Point>& points, Between between, bool holds = false,
         std::optional<double> held = std::nullopt)
      : points_(points), between_(between), holds_(holds), held_(held) {}

  // Moves to a time not before the last one given. False if the series takes no part there.
  bool MoveTo(Nanos time);
  // At that time: whether the series has a point, and its value.
  bool at_point() const { return at_point_; }
  double value() const { return value_; }
  // The last point that is not after that time.
  size_t at() const { return at_; }

 private:
  double Guess(Nanos time) const;

  const std::vector<Point>& points_;
  const Between between_;
  const bool holds_;
  const std::optional<double> held_;
  size_t at_ = 0;
  bool at_point_ = false;
  double value_ = 0;
};

// A series within the query's data range: in time order, the last of equal times, no NaN.
std::vector<Point> Within(std::vector<Point> points, const TimeRange& range);
// Checks, before filling, that it makes no more points of so many series than there is room for.
Status CheckFilled(const QuerySpec& spec, size_t series);
// The whole number that a point stands for; nothing if it is a fraction.
std::optional<int64_t> IntegerOf(const Point& point, const LargeIntegers& large);
// Downsampling and rate. `large`: those of SeriesData.
std::vector<Point> Prepare(std::vector<Point> points, const QuerySpec& spec,
                           const LargeIntegers& large = {});
// One value for each time in [start, end] at which any of the series has a point. `holds`: as of a
// Cursor.
std::vector<Point> Aggregate(const std::vector<std::vector<Point>>& series, Aggregator aggregator,
                             Between between, Nanos start, Nanos end, bool holds = false);

// --- Counters (docs/queries.md) ---

bool Counts(const Metric& metric);
// Lets a counter that begins anew, as with a new daemon, go on from its earlier value.
void GoOnAfterResets(std::vector<Point>& points);
// Whether the series of a counter keep their last value after their last point: yes where series
// are aggregated, except for rates, which end.
bool HoldsCounters(const QuerySpec& spec);
// BetweenPoints for a counter, which never falls.
Between BetweenCounts(const QuerySpec& spec);
// Prepare for a counter. Buckets are not filled: see FillBuckets. Where counters are held, points
// before the range may be given: they tell where the counter begins anew, and the last of them lets
// it take part from the start of the range on. `held`: gets what it keeps after its last point.
std::vector<Point> PrepareCounter(std::vector<Point> points, const QuerySpec& spec,
                                  std::optional<double>* held = nullptr);
// The same for rows of the whole step from series/query/counter_total.h: they do not fall, and no
// counter in them begins anew.
std::vector<Point> PrepareRows(std::vector<Point> points, const QuerySpec& spec);
// Fills the empty buckets of the answer; does nothing where the series were filled already.
void FillBuckets(const QuerySpec& spec, std::vector<Point>& points);

// The times in [start, end] at which any of the series has a point.
std::vector<Nanos> UnionOfTimes(const std::vector<std::vector<Point>>& series, Nanos start,
                                Nanos end);

// The answer of `none` in one place.
std::vector<QueryResult> EvaluateAlone(const QuerySpec& spec, std::vector<SeriesData> series);
// The order of series that are not aggregated: by tags and, for equal tags, by points, so that it
// does not depend on where the series came from.
bool Before(const QueryResult& a, const QueryResult& b);

// The literals "a|b|c" of a filter, one by one.
std::vector<std::string> Alternatives(std::string_view pattern);

// --- Where a part cannot be aggregated ---

// Whether every series has to be kept by itself: with `none` for ever, with an aggregator that
// needs all values at once until all series are there.
bool KeepsSeries(const QuerySpec& spec);
// Series of one group, after downsampling and rate, in the order of their tags. `integers` and
// `large` are those of SeriesData, or empty.
struct WholeGroup {
  std::vector<const Tags*> tags;
  std::vector<std::vector<Point>> points;
  std::vector<std::vector<bool>> integers;
  std::vector<LargeIntegers> large;
};
QueryResult AggregateWhole(const QuerySpec& spec, const WholeGroup& group);
// The answer for series of which some are whole numbers, to a query without downsampling and rate.
std::vector<QueryResult> EvaluateIntegers(const QuerySpec& spec, std::vector<SeriesData> series);

// --- Parts ---

Status TooLarge(const QuerySpec& spec, std::string_view what, size_t limit);
// Checks groups, all but the last known to be within the bounds of a part; `points`: of all.
Status CheckBounds(const QuerySpec& spec, const std::vector<GroupPart>& groups, size_t points);
// Merges the tags and keys of another set of series into `group`.
void MergeTags(const Tags& tags, const std::vector<std::string>& other_keys, GroupPart& group);

// The keys to group by, sorted, each once.
std::vector<std::string> GroupKeys(const QuerySpec& spec);
// The values of those keys: equal for the series of one group.
std::vector<std::string> GroupOf(const Tags& tags, const std::vector<std::string>& keys);
// Whether no result is of series with different values of that tag, so that the series of each
// value may be evaluated by themselves: every group of theirs is whole.
bool IsSeparateBy(const QuerySpec& spec, std::string_view key);
// Whether its answer can be put together from parts (series/query/part.h) of several jobs: where
// results are of one host no values between its points are exchanged, and hosts have several jobs.
bool HasParts(const QuerySpec& spec);
// Results that were evaluated by themselves, in the order that Evaluate gives them.
void SortResults(const QuerySpec& spec, std::vector<QueryResult>& results);
// Metric and tags of a group's result.
QueryResult Describe(const QuerySpec& spec, const std::vector<const Tags*>& group);

}  // namespace sonde::query_steps
