// The query algebra: select series by metric and tags, downsample, rate, aggregate over groups.
//
// The steps and their order are OpenTSDB's: for each series downsample, then rate, then aggregation
// over the group at the union of timestamps, a series taking part only between its own first and
// last point, with interpolation between its points.
//
// Thread safety: functions without state.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/job.h"
#include "core/status.h"
#include "core/time.h"
#include "core/time_zone.h"
#include "series/query/calendar.h"
#include "series/store/store.h"

namespace sonde {

// OpenTSDB's aggregators. Values go over links: new ones come last.
enum class Aggregator : uint8_t {
  kSum,
  kAvg,
  kMin,
  kMax,
  kCount,
  kNone,
  // The sum, the minimum and the maximum again, with another value for a series between its
  // points.
  kZimsum,
  kPfsum,
  kMimmin,
  kMimmax,
  kSquareSum,
  kDev,  // standard deviation of the values given: over n, not n - 1
  kMedian,
  kMult,
  kDiff,  // the last series less the first, by tags; in a bucket by time
  kFirst,
  kLast,
  kP50,
  kP75,
  kP90,
  kP95,
  kP99,
  kP999,
  kEp50R3,  // percentiles of whole numbers by other definitions
  kEp75R3,
  kEp90R3,
  kEp95R3,
  kEp99R3,
  kEp999R3,
  kEp50R7,
  kEp75R7,
  kEp90R7,
  kEp95R7,
  kEp99R7,
  kEp999R7,
  kP5,  // Sonde's own
};
inline constexpr Aggregator kLastAggregator = Aggregator::kP5;

Result<Aggregator> ParseAggregator(std::string_view name);
std::string_view ToString(Aggregator aggregator);
const std::vector<std::string_view>& AggregatorNames();
// The share of values that lies below, for p5 to p999, which merge; 0 for other aggregators.
double PercentileOf(Aggregator aggregator);

struct Downsample {
  Nanos interval = 0;  // 0: the whole range in one point at its start ("0all-avg")
  Aggregator function = Aggregator::kAvg;
  enum class Fill : uint8_t { kNone, kNull, kNan, kZero } fill = Fill::kNone;
  // Buckets by the calendar, of which `interval` then is the usual length; nullptr: all of one
  // length.
  std::shared_ptr<const Calendar> calendar = nullptr;
};
// "1m-avg", "30s-max-nan", "0all-sum", "1dc-avg"; a trailing dash is accepted. With `calendar`
// every interval is one of the calendar, as if it had a c.
Result<Downsample> ParseDownsample(std::string_view text, bool calendar = false);
// Works out where the buckets of a calendar are, for a range that is now known; other downsampling
// needs nothing. kLimit if they are too many.
Status ResolveCalendar(const TimeZone& zone, std::string_view name, Nanos start, Nanos end,
                       Downsample& how);

struct RateOptions {
  static constexpr double kCounterEnd = 9223372036854775807.0;  // 2^63 - 1: OpenTSDB's default

  bool counter = false;
  double counter_max = kCounterEnd;  // may be 0, as in OpenTSDB
  double reset_value = 0;            // a rollover rate above it becomes 0; 0: none
  bool drop_resets = false;
};

// Types go over links: new ones come last.
struct TagFilter {
  enum class Type : uint8_t {
    kLiteralOr,
    kNotLiteralOr,
    kILiteralOr,
    kNotILiteralOr,
    kWildcard,
    kIWildcard,
    kRegexp,
    kNotKey,  // the series does not have the key; it has no pattern and groups nothing
  };
  Type type = Type::kLiteralOr;
  std::string key;
  std::string pattern;
  bool group_by = false;
};

// By the name it has in OpenTSDB: "literal_or", "wildcard" and so on.
Result<TagFilter::Type> ParseFilterType(std::string_view name);

struct QuerySpec {
  std::string metric;
  Aggregator aggregator = Aggregator::kSum;
  std::optional<Downsample> downsample;
  bool rate = false;
  RateOptions rate_options;
  std::vector<TagFilter> filters;
  bool explicit_tags = false;
  Nanos start = 0;
  Nanos end = 0;
};

inline constexpr Nanos kMaxQueryTime = Nanos{1} << 61;
inline constexpr Nanos kMaxFilledBuckets = 1'000'000;
inline constexpr size_t kMaxFilters = 64;
inline constexpr size_t kMaxPatternLength = 256 * 1024;  // a dashboard may list every host

// Whether the query makes sense: times, downsampling, patterns. A calendar has to be resolved.
// Evaluate and DecodeQuery check it.
Status CheckQuery(const QuerySpec& spec);

struct TimeRange {
  Nanos first;
  Nanos last;  // belongs to it
};
// The points that Evaluate needs, which are more than those of [start, end]: rates and
// interpolation use the points, or the buckets, of the whole hours of start and end, as in
// OpenTSDB. For a query that CheckQuery accepts; others are ignored wherever they come from.
TimeRange DataRange(const QuerySpec& spec);

struct QueryResult {
  std::string metric;
  Tags tags;                                // common to all series of the group
  std::vector<std::string> aggregate_tags;  // keys with several values within it; one that
                                            // only some of its series have may be in `tags`
  std::vector<Point> points;
  LargeIntegers large = {};  // whole numbers among the points, which are rounded there
  bool operator==(const QueryResult&) const = default;
};

// Whether a series belongs to the query. Fails on a pattern that does not parse.
class SeriesFilter {
 public:
  static Result<SeriesFilter> Make(const QuerySpec& spec);
  bool Matches(const Series& series) const;
  // The same with tags that the series itself does not carry, such as host and job.
  bool Matches(std::string_view metric, const Tags& tags) const;

 private:
  struct Rep;
  std::shared_ptr<const Rep> rep_;
};

// The single steps, for callers that push them down. Points are in time order, one a time; NaN is
// a missing value. Only fills make points of NaN. Buckets are those that begin in [start, end].
std::vector<Point> ApplyDownsample(const std::vector<Point>& points, const Downsample& how,
                                   Nanos start, Nanos end);
// `large`: the whole numbers among them, whose differences are exact.
std::vector<Point> ApplyRate(const std::vector<Point>& points, const RateOptions& how,
                             const LargeIntegers& large = {});

// All steps, over the series given (already filtered or not). Results are in the order of their
// group's tag values.
Result<std::vector<QueryResult>> Evaluate(const QuerySpec& spec, std::vector<SeriesData> series);

// A question about the whole step may be answered from reduced series (see series/store/reduced.h)
// instead of those of every node. True when that is exact, given that every node has a value at
// every tick: no filter is on a tag that reduction drops (host, task), and the aggregation
// commutes with what is done to each series before it. docs/queries.md has the table. `counts`: the
// metric is a counter, whose largest value in a bucket is the last.
bool AnswersFromReduced(const QuerySpec& spec, bool counts = false);
// Whether the percentiles that are recorded of each tick (series/store/reduced.h) may answer, in a
// step that samples every `period`. They do, within 1 %, if the metric has its spread and each
// group is one series; else the nodes have to be asked.
bool SpreadAnswers(const QuerySpec& spec, Nanos period);
// The range to read of the reduced series of a step that samples every `period`: for counters also
// some rows before the query's range, which tell how many nodes a whole row has.
TimeRange ReducedRange(const QuerySpec& spec, bool counts, Nanos period);
// Whether its answer depends on a series with the tag `stat`.
bool ReducedNeeds(const QuerySpec& spec, const Series& reduced);
// The answer, from series with the tag `stat`; needs AnswersFromReduced or SpreadAnswers. Tags that
// reduction dropped are not among the results' aggregate_tags. Of percentiles: nothing if none are
// recorded, kUnsupported if a group is more than one series. `presence`: of the step, if it is
// known (series/query/counter_total.h).
Result<std::vector<QueryResult>> EvaluateReduced(const QuerySpec& spec,
                                                 const std::vector<SeriesData>& reduced,
                                                 std::span<const PresenceRun> presence = {});

// The spec as bytes, for the tree. Decoding trusts nothing.
void EncodeQuery(const QuerySpec& spec, std::string& out);
Result<QuerySpec> DecodeQuery(std::string_view bytes);

}  // namespace sonde
