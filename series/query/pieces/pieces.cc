#include "series/query/pieces/pieces.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string_view>
#include <utility>

#include "series/query/aggregate.h"
#include "series/query/part.h"
#include "series/query/steps.h"
#include "series/store/reduced.h"

namespace sonde {

using namespace query_steps;

namespace {

constexpr Nanos kNone = -1;

// Where the values of the answer are: buckets, or without a downsample each time by itself.
class AnswerTimes {
 public:
  explicit AnswerTimes(const QuerySpec& spec) : spec_(spec) {}

  // The answer's time to which a point of that time belongs.
  Nanos Of(Nanos time) const {
    if (!spec_.downsample) return time;
    const Downsample& how = *spec_.downsample;
    if (how.calendar != nullptr) {
      return time < how.calendar->edges.front() ? time : how.calendar->BucketOf(time);
    }
    return how.interval == 0 ? spec_.start : time - time % how.interval;
  }
  // The last time of that bucket.
  Nanos End(Nanos bucket) const {
    if (!spec_.downsample) return bucket;
    const Downsample& how = *spec_.downsample;
    if (how.calendar != nullptr) {
      const auto& edges = how.calendar->edges;
      const auto next = std::upper_bound(edges.begin(), edges.end(), bucket);
      return next == edges.end() ? std::numeric_limits<Nanos>::max() : *next - 1;
    }
    return how.interval == 0 ? spec_.end - 1 : bucket + how.interval - 1;
  }

 private:
  const QuerySpec& spec_;
};

bool StatIs(const Series& reduced, std::string_view name) {
  const std::string* stat = reduced.tags.Find(kStatTag);
  return stat != nullptr && *stat == name;
}

bool ComesBefore(const Point& p, Nanos time) { return p.time < time; }

// The value at `time`; `walk` only goes forward.
double CountAt(const std::vector<Point>& counts, Nanos time, size_t& walk) {
  while (walk < counts.size() && counts[walk].time < time) ++walk;
  return walk < counts.size() && counts[walk].time == time ? counts[walk].value : 0;
}

// The step's rows, and which of them are right.
class Rows {
 public:
  Rows(const QuerySpec& spec, const std::vector<SeriesData>& reduced,
       const std::vector<TimeRange>& absences, Nanos period)
      : range_(DataRange(spec)) {
    for (const SeriesData& one : reduced) {
      if (StatIs(one.series, "count")) counts_.push_back(&one.points);
    }
    FindTimes(period);
    right_.assign(times_.size(), true);
    calm_.assign(times_.size() + 1, true);
    LookAtAbsences(absences);
    std::vector<bool> came = calm_;
    came.flip();
    came[0] = true;
    for (const auto* counts : counts_) LookAtCounts(*counts, came);
    for (size_t i = 0; i < size(); ++i) {
      if (right_[i]) right_times_.push_back(times_[i]);
    }
  }

  size_t size() const { return times_.size(); }
  Nanos operator[](size_t i) const { return times_[i]; }
  // Whether every series that is there has a value in it.
  bool right(size_t i) const { return right_[i]; }
  // Nothing came or went between the row before and this one.
  bool calm(size_t i) const { return calm_[i]; }
  // The next row that is right, the one before, and the next of any; kNone if there is none.
  Nanos RightAfter(Nanos time) const { return After(time, right_times_); }
  Nanos After(Nanos time) const { return After(time, times_); }
  Nanos RightBefore(Nanos time) const {
    const auto at = std::lower_bound(right_times_.begin(), right_times_.end(), time);
    return at == right_times_.begin() ? kNone : *(at - 1);
  }
  const TimeRange& range() const { return range_; }
  // Whether a row of that time is right; of rows before the range it is not known.
  bool IsRight(Nanos time) const {
    return std::binary_search(right_times_.begin(), right_times_.end(), time);
  }

 private:
  static Nanos After(Nanos time, const std::vector<Nanos>& times) {
    const auto at = std::upper_bound(times.begin(), times.end(), time);
    return at == times.end() ? kNone : *at;
  }

  // The last row of a step lies beside the ticks and is no sample of anything.
  void FindTimes(Nanos period) {
    for (const auto* counts : counts_) {
      for (const Point& p : *counts) {
        const bool is_tick = p.time % period == 0 && p.value > 0;
        if (is_tick && p.time >= range_.first && p.time <= range_.last) times_.push_back(p.time);
      }
    }
    std::sort(times_.begin(), times_.end());
    times_.erase(std::unique(times_.begin(), times_.end()), times_.end());
  }

  // `came`: nodes may have come before that row.
  void LookAtCounts(const std::vector<Point>& counts, const std::vector<bool>& came) {
    size_t walk = 0;
    size_t fell = size();  // the first row that has fewer
    size_t rose = 0;       // the last one after it that has more
    const std::vector<bool> known = right_;
    double now = size() > 0 ? CountAt(counts, times_[0], walk) : 0;
    for (size_t i = 1; i < size(); ++i) {
      if (!known[i]) continue;  // of these it is known who is missing
      const double before = std::exchange(now, CountAt(counts, times_[i], walk));
      if (now == before) continue;
      calm_[i] = false;
      if (now < before) fell = std::min(fell, i);
      if (now > before && fell < i) rose = i;
      if (now > before && !came[i]) LookAtBeginning(i, came);
    }
    for (size_t i = fell; i < rose; ++i) right_[i] = false;
  }

  // A series that comes in row `i` of a node that is there may have a point of the node's first
  // sample, which lies beside the ticks, if it was missing in the rows since. Those are few.
  void LookAtBeginning(size_t i, const std::vector<bool>& came) {
    constexpr size_t kMostMissing = 16;
    const size_t least = i - std::min(i, kMostMissing);
    size_t first = i;
    while (first > least && !came[first]) --first;
    if (!came[first]) return;
    for (size_t row = first; row < i; ++row) right_[row] = false;
  }

  // Both ascend, and there may be as many absences as nodes: one walk along them.
  void LookAtAbsences(const std::vector<TimeRange>& absences) {
    auto absence =
        std::lower_bound(absences.begin(), absences.end(), range_.first,
                         [](const TimeRange& range, Nanos time) { return range.last < time; });
    size_t row = 0;
    const auto move_to = [&](Nanos time) {
      while (row < size() && times_[row] < time) ++row;
      return row;
    };
    for (; absence != absences.end() && absence->first <= range_.last; ++absence) {
      calm_[move_to(absence->first)] = false;
      for (size_t i = row; i < size() && times_[i] <= absence->last; ++i) right_[i] = false;
      calm_[move_to(absence->last)] = false;
    }
  }

  const TimeRange range_;
  std::vector<const std::vector<Point>*> counts_;
  std::vector<Nanos> times_;
  std::vector<bool> right_;
  std::vector<bool> calm_;
  std::vector<Nanos> right_times_;
};

// What the series have to give between two rows that are right; kNone: the range ends there.
QueryPiece PieceBetween(const QuerySpec& spec, const Rows& rows, Nanos before, Nanos after) {
  const AnswerTimes answer(spec);
  const TimeRange& range = rows.range();
  QueryPiece piece;
  piece.times.first = answer.Of(before == kNone ? range.first : before + 1);
  piece.times.last = answer.Of(after == kNone ? range.last : after - 1);
  if (spec.rate && after != kNone) {  // a rate leads from a piece to the value behind it
    const Nanos behind = rows.After(answer.End(piece.times.last));
    if (behind != kNone) piece.times.last = answer.Of(behind);
  }
  // The values before and behind, to which those in the piece lead; and of rates one more before.
  Nanos from = rows.RightBefore(piece.times.first);
  const Nanos to = rows.RightAfter(answer.End(piece.times.last));
  if (spec.rate && from != kNone) from = rows.RightBefore(answer.Of(from));
  piece.data.first = from == kNone ? range.first : std::max(range.first, answer.Of(from));
  piece.data.last = to == kNone ? range.last : std::min(range.last, answer.End(answer.Of(to)));
  return piece;
}

// Adds a piece behind the others. Pieces that need the same points become one, and so do those that
// lie so close that there would be too many.
void Add(const QuerySpec& spec, QueryPiece piece, std::vector<QueryPiece>& pieces) {
  constexpr Nanos kMostPieces = 64;
  const TimeRange range = DataRange(spec);
  const Nanos close = (range.last - range.first) / kMostPieces;
  piece.times = {std::max(piece.times.first, spec.start), std::min(piece.times.last, spec.end)};
  if (piece.times.first > piece.times.last) return;
  if (pieces.empty() || pieces.back().data.last + close < piece.data.first) {
    pieces.push_back(piece);
    return;
  }
  QueryPiece& one = pieces.back();
  one.times.last = std::max(one.times.last, piece.times.last);
  one.data.first = std::min(one.data.first, piece.data.first);
  one.data.last = std::max(one.data.last, piece.data.last);
}

// Whether rows that are right have what the query needs. They do not
//   - where the zero of an empty bucket is a value of a series, of which no row knows,
//   - for the number of a counter's rates: rows still have the counters that have ended,
//   - for the sum or the number of a counter's values in a bucket: of those that have ended rows
//     have one at each tick.
bool RowsTell(const QuerySpec& spec, const std::vector<SeriesData>& reduced) {
  const bool counts = std::any_of(reduced.begin(), reduced.end(),
                                  [](const SeriesData& one) { return Counts(one.series.metric); });
  const Aggregator basis = Basis(spec.aggregator);
  if (!counts) {
    const bool zeros = spec.downsample && spec.downsample->fill == Downsample::Fill::kZero;
    return !zeros || basis == Aggregator::kSum;
  }
  if (spec.rate && (basis == Aggregator::kAvg || basis == Aggregator::kCount)) return false;
  return !spec.downsample || (KeepsOneValue(spec.downsample->function) &&
                              spec.downsample->function != Aggregator::kSum);
}

// Whether the newest row is right, and nothing came or went behind it.
bool EndsCalmly(const Rows& rows, Nanos last_right) {
  const bool is_right = rows.size() == 0 || last_right == rows[rows.size() - 1];
  return is_right && rows.calm(rows.size());
}

std::vector<QueryPiece> PiecesOf(const QuerySpec& spec, const Rows& rows,
                                 const std::vector<SeriesData>& reduced, bool running) {
  std::vector<QueryPiece> pieces;
  Nanos before = kNone;
  if (RowsTell(spec, reduced)) {
    for (size_t i = 0; i < rows.size(); ++i) {
      if (!rows.right(i)) continue;
      const bool next = i > 0 && before == rows[i - 1] && rows.calm(i);
      if (!next) Add(spec, PieceBetween(spec, rows, before, rows[i]), pieces);
      before = rows[i];
    }
  }
  if (!running || !EndsCalmly(rows, before)) {
    Add(spec, PieceBetween(spec, rows, before, kNone), pieces);
  }
  return pieces;
}

// `ranges`: ascending, and apart.
bool IsIn(Nanos time, const std::vector<TimeRange>& ranges) {
  const auto behind =
      std::upper_bound(ranges.begin(), ranges.end(), time,
                       [](Nanos t, const TimeRange& range) { return t < range.first; });
  return behind != ranges.begin() && time <= (behind - 1)->last;
}

// How many values rows have at a time, and their sum.
struct ValuesAt {
  double count = 0;
  double sum = 0;
};

std::map<Nanos, ValuesAt> ValuesOfRows(const TimeRange& range,
                                       const std::vector<SeriesData>& reduced, Nanos period) {
  std::map<Nanos, ValuesAt> values;
  for (const SeriesData& one : reduced) {
    const bool count = StatIs(one.series, "count");
    if (!count && !StatIs(one.series, "sum")) continue;
    double ValuesAt::*which = count ? &ValuesAt::count : &ValuesAt::sum;
    for (auto at = std::lower_bound(one.points.begin(), one.points.end(), range.first, ComesBefore);
         at != one.points.end() && at->time <= range.last; ++at) {
      if (at->time % period == 0) values[at->time].*which += at->value;
    }
  }
  constexpr double kRounding = 1e-9;
  for (auto& [time, value] : values) value.sum -= kRounding * std::abs(value.sum);
  return values;
}

// The range in which empty buckets are filled. Those of a gauge are filled before its rates are
// taken, and the first bucket has no rate.
QuerySpec FilledBy(const QuerySpec& spec, bool counts) {
  QuerySpec filled = spec;
  if (counts || !spec.rate || !spec.downsample || spec.downsample->interval == 0) return filled;
  const AnswerTimes answer(spec);
  const Nanos first = DataRange(spec).first;
  const Nanos bucket = answer.Of(first) < first ? answer.End(answer.Of(first)) + 1 : first;
  filled.start = std::max(spec.start, answer.End(bucket) + 1);
  return filled;
}

}  // namespace

bool PiecesNeed(const QuerySpec& spec, const Series& reduced) {
  const bool sum = Counts(reduced.metric) && StatIs(reduced, "sum");
  return ReducedNeeds(spec, reduced) ||
         (reduced.metric.name == spec.metric && (StatIs(reduced, "count") || sum));
}

CutQuery CutPieces(const QuerySpec& spec, const std::vector<SeriesData>& reduced,
                   const std::vector<TimeRange>& absences, Nanos period, bool running) {
  const Rows rows(spec, reduced, absences, period);
  CutQuery cut;
  cut.pieces = PiecesOf(spec, rows, reduced, running);
  cut.rows = reduced;
  for (SeriesData& one : cut.rows) {
    std::erase_if(one.points, [&](const Point& p) {
      if (p.time < rows.range().first) return p.time % period != 0 || IsIn(p.time, absences);
      return !rows.IsRight(p.time);
    });
  }
  return cut;
}

size_t PointsIn(const TimeRange& range, const std::vector<SeriesData>& reduced) {
  double sum = 0;
  for (const SeriesData& one : reduced) {
    if (!StatIs(one.series, "count")) continue;
    for (auto at = std::lower_bound(one.points.begin(), one.points.end(), range.first, ComesBefore);
         at != one.points.end() && at->time <= range.last; ++at) {
      if (at->value > 0) sum += at->value;
    }
  }
  return static_cast<size_t>(sum);
}

bool SeriesLack(const TimeRange& data, const std::vector<SeriesData>& series,
                const std::vector<SeriesData>& reduced, Nanos period) {
  std::map<Nanos, ValuesAt> lacking = ValuesOfRows(data, reduced, period);
  const bool counts = std::any_of(reduced.begin(), reduced.end(),
                                  [](const SeriesData& one) { return Counts(one.series.metric); });
  for (const SeriesData& one : series) {
    std::vector<Point> points = one.points;
    if (counts) GoOnAfterResets(points);
    Cursor cursor(points, Between::kLine, /*holds=*/counts);
    for (auto& [time, values] : lacking) {
      if (!cursor.MoveTo(time)) continue;
      values.count -= 1;
      values.sum -= cursor.value();
    }
  }
  return std::any_of(lacking.begin(), lacking.end(), [&](const auto& one) {
    return counts ? one.second.sum > 0 : one.second.count > 0;
  });
}

QuerySpec QuestionOf(const QuerySpec& spec, const QueryPiece& piece) {
  QuerySpec question = spec;
  if (spec.downsample && spec.downsample->interval == 0) return question;  // its time is the start
  question.start = std::max(spec.start, piece.data.first);
  question.end = std::max(question.start + 1, std::min(spec.end, piece.data.last));
  return question;
}

QuerySpec QuestionOfAll(const QuerySpec& spec, const QueryPiece& piece, bool counts) {
  QuerySpec question;
  question.metric = spec.metric;
  question.aggregator = counts ? Aggregator::kSum : Aggregator::kCount;
  question.filters = spec.filters;
  for (TagFilter& filter : question.filters) filter.group_by = false;
  question.start = piece.data.first;
  question.end = std::max(piece.data.first + 1, piece.data.last);
  return question;
}

bool SeriesLack(const TimeRange& data, const std::vector<QueryResult>& all,
                const std::vector<SeriesData>& reduced, Nanos period, bool counts) {
  static const std::vector<Point> kNothing;
  const std::vector<Point>& points = all.empty() ? kNothing : all.front().points;
  auto at = points.begin();
  double last = 0;
  const auto lacks = [&](const auto& one) {
    const auto& [time, values] = one;
    bool known = false;
    for (; at != points.end() && at->time <= time; ++at) {
      last = at->value;
      known = at->time == time;
    }
    if (counts) return values.sum > last;
    return values.count > (known ? last : 0);
  };
  const std::map<Nanos, ValuesAt> rows = ValuesOfRows(data, reduced, period);
  return std::any_of(rows.begin(), rows.end(), lacks);
}

std::vector<QueryResult> InPiece(const QueryPiece& piece, std::vector<QueryResult> results) {
  for (QueryResult& result : results) {
    std::erase_if(result.points, [&](const Point& p) {
      return p.time < piece.times.first || p.time > piece.times.last;
    });
  }
  std::erase_if(results, [](const QueryResult& result) { return result.points.empty(); });
  return results;
}

Result<std::vector<QueryResult>> EvaluatePiece(const QuerySpec& spec, const QueryPiece& piece,
                                               std::vector<SeriesData> series) {
  Result<std::vector<QueryResult>> results = Evaluate(spec, std::move(series));
  if (!results.ok()) return results;
  return InPiece(piece, *std::move(results));
}

void JoinPiece(const QuerySpec& spec, const QueryPiece& piece, std::vector<QueryResult> of_series,
               bool counts, std::vector<QueryResult>& answer) {
  const std::vector<std::string> keys = GroupKeys(spec);
  std::map<std::vector<std::string>, size_t> places;
  for (size_t i = 0; i < answer.size(); ++i) {
    places[GroupOf(answer[i].tags, keys)] = i;
    std::erase_if(answer[i].points, [&](const Point& p) {
      return p.time >= piece.times.first && p.time <= piece.times.last;
    });
  }
  for (QueryResult& result : of_series) {
    const auto at = places.find(GroupOf(result.tags, keys));
    if (at == places.end()) {
      answer.push_back(std::move(result));
      continue;
    }
    QueryResult& group = answer[at->second];
    GroupPart merged;
    merged.tags = std::move(group.tags);
    merged.other_keys = std::move(group.aggregate_tags);
    MergeTags(result.tags, result.aggregate_tags, merged);
    group.tags = std::move(merged.tags);
    group.aggregate_tags = std::move(merged.other_keys);
    const auto behind =
        std::lower_bound(group.points.begin(), group.points.end(), piece.times.first, ComesBefore);
    group.points.insert(behind, result.points.begin(), result.points.end());
  }
  std::erase_if(answer, [](const QueryResult& result) { return result.points.empty(); });
  const QuerySpec filled = FilledBy(spec, counts);
  for (QueryResult& result : answer) FillBuckets(filled, result.points);
  SortResults(spec, answer);
}

}  // namespace sonde
