// The parts of an evaluation that the raw and the reduced way share.
//
// Thread safety: functions without state.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "series/query.h"

namespace sonde::query_steps {

// What a series counts for between two of its points.
enum class Between { kLine, kZero, kPrevious };
Between BetweenPoints(const QuerySpec& spec);

// A series as it is walked through time, after downsampling and rate. Keeps a reference to the
// points.
class Cursor {
 public:
  Cursor(const std::vector<Point>& points, Between between) : points_(points), between_(between) {}

  // To a time that is not before the last one given. False if the series takes no part there.
  bool MoveTo(Nanos time);
  // There: whether the series has a point, and what it counts for.
  bool at_point() const { return at_point_; }
  double value() const { return value_; }

 private:
  double Guess(Nanos time) const;

  const std::vector<Point>& points_;
  const Between between_;
  size_t at_ = 0;
  bool at_point_ = false;
  double value_ = 0;
};

// A series within the query's data range: in time order, the last of equal times, no NaN.
std::vector<Point> Within(std::vector<Point> points, const TimeRange& range);
// Downsampling and rate.
std::vector<Point> Prepare(std::vector<Point> points, const QuerySpec& spec);
// One value for each time in [start, end] at which any of the series has a point.
std::vector<Point> Aggregate(const std::vector<std::vector<Point>>& series, Aggregator aggregator,
                             Between between, Nanos start, Nanos end);

// The keys to group by, sorted, each once.
std::vector<std::string> GroupKeys(const QuerySpec& spec);
// The values of those keys: equal for the series of one group.
std::vector<std::string> GroupOf(const Tags& tags, const std::vector<std::string>& keys);
// Metric and tags of a group's result.
QueryResult Describe(const QuerySpec& spec, const std::vector<const Tags*>& group);

}  // namespace sonde::query_steps
