// Rows and the nodes' series together answer what all series answer: of random steps random
// questions.
//
// SONDE_ROWS_SEEDS=FIRST-LAST runs other seeds than the first 300.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "series/query/pieces/absences.h"
#include "series/query/pieces/pieces.h"
#include "series/query/steps.h"
#include "tests/unit/rows_step.h"

namespace sonde::rows_property_test {
namespace {

std::string Shown(const std::vector<QueryResult>& results) {
  std::ostringstream out;
  for (const QueryResult& result : results) {
    for (const auto& [key, value] : result.tags.pairs()) out << key << '=' << value << ' ';
    for (const Point& p : result.points) {
      out << static_cast<double>(p.time - RowsStep::kStart) / kSecond << ':' << p.value << ' ';
    }
    out << '\n';
  }
  return out.str();
}

std::string Shown(const QuerySpec& spec) {
  std::ostringstream out;
  out << ToString(spec.aggregator) << (spec.rate ? " rate" : "");
  if (spec.downsample) {
    out << ' ' << spec.downsample->interval / kMillisecond << "ms-"
        << ToString(spec.downsample->function) << " fill "
        << static_cast<int>(spec.downsample->fill);
  }
  for (const TagFilter& filter : spec.filters) out << ' ' << filter.pattern << filter.group_by;
  out << " from " << static_cast<double>(spec.start - RowsStep::kStart) / kSecond << " to "
      << static_cast<double>(spec.end - RowsStep::kStart) / kSecond;
  return out.str();
}

class Questions {
 public:
  explicit Questions(RowsStep& step) : step_(step) {}

  // One that rows answer.
  QuerySpec Next(bool counts) {
    for (;;) {
      QuerySpec spec = Any();
      // Rows keep what an ended task counted and do not tell when it ended: its last bucket is as
      // of one that goes on.
      const bool of_buckets =
          spec.downsample && (spec.rate || spec.downsample->function == Aggregator::kAvg);
      const bool unknown = counts && of_buckets && step_.tasks_end();
      if (!unknown && CheckQuery(spec).ok() && AnswersFromReduced(spec, counts)) return spec;
    }
  }

 private:
  QuerySpec Any() {
    constexpr Aggregator kAggregators[] = {
        Aggregator::kSum,    Aggregator::kZimsum, Aggregator::kPfsum,
        Aggregator::kAvg,    Aggregator::kMin,    Aggregator::kMax,
        Aggregator::kMimmin, Aggregator::kMimmax, Aggregator::kCount};
    constexpr Aggregator kFunctions[] = {Aggregator::kSum, Aggregator::kAvg,   Aggregator::kMin,
                                         Aggregator::kMax, Aggregator::kCount, Aggregator::kFirst,
                                         Aggregator::kLast};
    constexpr Nanos kIntervals[] = {500, 1000, 2000, 3000, 5000, 7000, 15000, 60000, 0};
    QuerySpec spec;
    spec.metric = "value";
    spec.aggregator = kAggregators[step_.Below(std::size(kAggregators))];
    spec.rate = step_.Below(3) == 0;
    if (step_.Below(3) != 0) {
      Downsample how;
      how.interval = kIntervals[step_.Below(std::size(kIntervals))] * kMillisecond;
      how.function = kFunctions[step_.Below(std::size(kFunctions))];
      how.fill = static_cast<Downsample::Fill>(step_.Below(4));
      spec.downsample = how;
    }
    if (step_.Below(2) == 0) {
      spec.filters.push_back({TagFilter::Type::kWildcard, "mode", "*", step_.Below(2) == 0});
    }
    const Nanos length = step_.end() - RowsStep::kStart;
    const auto any = [&] { return static_cast<Nanos>(step_.Below(static_cast<size_t>(length))); };
    spec.start = RowsStep::kStart + (step_.Below(3) == 0 ? -10 * kSecond : any());
    spec.end = spec.start + 1 + (step_.Below(3) == 0 ? 2 * length : any());
    if (step_.Below(2) == 0) spec.start -= spec.start % kSecond;
    return spec;
  }

  RowsStep& step_;
};

// The points of [data.first, data.last]; of counters also those that tell what it had counted
// before, as an archive reads them.
std::vector<SeriesData> Read(const RowsStep& step, const TimeRange& data, bool counted) {
  std::vector<SeriesData> read;
  for (const SeriesData& one : step.series()) {
    SeriesData some;
    some.series = one.series;
    Point before{};
    bool any = false;
    for (const Point& p : one.points) {
      if (p.time < data.first && counted) {
        const bool anew = any && p.value < before.value;
        if (anew) some.points.push_back(before);
        if (anew) some.points.push_back(p);
        before = p;
        any = true;
      }
      if (p.time < data.first || p.time > data.last) continue;
      if (any) some.points.push_back(before);
      any = false;
      some.points.push_back(p);
    }
    if (any) some.points.push_back(before);
    if (!some.points.empty()) read.push_back(std::move(some));
  }
  return read;
}

bool SameGroup(const QuerySpec& spec, const Tags& a, const Tags& b) {
  const std::vector<std::string> keys = query_steps::GroupKeys(spec);
  return query_steps::GroupOf(a, keys) == query_steps::GroupOf(b, keys);
}

// Where none of a group counts, series have no points, but one at the start of the range with what
// was counted before; rows have the total at every tick.
void DropTotals(const QuerySpec& spec, const RowsStep& step, std::vector<QueryResult>& of_series,
                std::vector<QueryResult>& of_rows) {
  const Nanos length = spec.downsample ? std::max<Nanos>(spec.downsample->interval, 1) : 1;
  const bool all = spec.downsample && spec.downsample->interval == 0;
  for (QueryResult& rows : of_rows) {
    std::erase_if(rows.points, [&](const Point& p) {
      return std::none_of(step.series().begin(), step.series().end(), [&](const SeriesData& one) {
        return SameGroup(spec, one.series.tags, rows.tags) &&
               std::any_of(one.points.begin(), one.points.end(), [&](const Point& s) {
                 return s.time >= p.time && (all || s.time < p.time + length);
               });
      });
    });
  }
  std::erase_if(of_rows, [](const QueryResult& result) { return result.points.empty(); });
  for (QueryResult& series : of_series) {
    if (series.points.front().time != spec.start) continue;
    const bool both = std::any_of(of_rows.begin(), of_rows.end(), [&](const QueryResult& rows) {
      return SameGroup(spec, rows.tags, series.tags) && rows.points.front().time == spec.start;
    });
    if (!both) series.points.erase(series.points.begin());
  }
  std::erase_if(of_series, [](const QueryResult& result) { return result.points.empty(); });
}

// Of counters buckets are filled in the answer, and of those that have ended rows have the totals.
void DropFillers(std::vector<QueryResult>& results) {
  for (QueryResult& result : results) {
    std::erase_if(result.points,
                  [](const Point& p) { return std::isnan(p.value) || p.value == 0; });
  }
  std::erase_if(results, [](const QueryResult& result) { return result.points.empty(); });
}

// Where nothing was measured in the range, a group is there only to be filled, if any of its series
// has points in the hours around it. Pieces do not look for such groups.
void DropEmpty(std::vector<QueryResult>& results) {
  std::erase_if(results, [](const QueryResult& result) {
    return std::all_of(result.points.begin(), result.points.end(),
                       [](const Point& p) { return std::isnan(p.value) || p.value == 0; });
  });
}

bool Same(const std::vector<QueryResult>& a, const std::vector<QueryResult>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].points.size() != b[i].points.size()) return false;
    for (size_t p = 0; p < a[i].points.size(); ++p) {
      const Point& x = a[i].points[p];
      const Point& y = b[i].points[p];
      if (x.time != y.time || std::isnan(x.value) != std::isnan(y.value)) return false;
      const double large = std::max({std::abs(x.value), std::abs(y.value), 1e-3});
      if (std::abs(x.value - y.value) > 1e-9 * large) return false;
    }
  }
  return true;
}

struct Tally {
  size_t questions = 0;
  size_t pieces = 0;
  size_t points = 0;   // of the answers
  size_t of_rows = 0;  // of them from rows
  size_t differences = 0;
};

void AskOne(const RowsStep& step, const QuerySpec& spec, bool counts, Tally& tally) {
  const bool each_value = counts && spec.aggregator != Aggregator::kSum &&
                          spec.aggregator != Aggregator::kZimsum &&
                          spec.aggregator != Aggregator::kPfsum;
  const CutQuery cut =
      CutPieces(spec, step.reduced(),
                AbsencesOf(step.job().nodes, step.job().presence, step.job().end, each_value),
                RowsStep::kPeriod);
  Result<std::vector<QueryResult>> answer = EvaluateReduced(spec, cut.rows);
  ASSERT_TRUE(answer.ok());
  for (QueryResult& result : *answer) result.tags.Set("all", "");
  size_t of_pieces = 0;
  for (const QueryPiece& piece : cut.pieces) {
    const bool counted = counts && query_steps::HoldsCounters(spec);
    std::vector<SeriesData> read = Read(step, piece.data, counted);
    auto part = EvaluatePiece(spec, piece, std::move(read));
    ASSERT_TRUE(part.ok());
    for (const QueryResult& result : *part) {
      of_pieces += result.points.size();
      for (const Point& p : result.points) ASSERT_TRUE(p.time >= spec.start && p.time <= spec.end);
    }
    JoinPiece(spec, piece, *std::move(part), counts, *answer);
  }
  Result<std::vector<QueryResult>> all = Evaluate(spec, step.series());
  ASSERT_TRUE(all.ok());
  std::vector<QueryResult> expected = *std::move(all);
  for (std::vector<QueryResult>* results : {&expected, &*answer}) {
    for (QueryResult& result : *results) {
      for (const char* key : {"host", "all"}) result.tags.Erase(key);
    }
  }
  const bool fills = spec.downsample && spec.downsample->fill != Downsample::Fill::kNone;
  for (std::vector<QueryResult>* results : {&expected, &*answer}) {
    if (fills) counts ? DropFillers(*results) : DropEmpty(*results);
  }
  if (counts) DropTotals(spec, step, expected, *answer);
  ++tally.questions;
  tally.pieces += cut.pieces.size();
  for (const QueryResult& result : *answer) tally.points += result.points.size();
  tally.of_rows = tally.points - std::min(tally.points, of_pieces);
  if (Same(expected, *answer)) return;
  ++tally.differences;
  std::string pieces;
  for (const QueryPiece& piece : cut.pieces) {
    for (const Nanos time :
         {piece.times.first, piece.times.last, piece.data.first, piece.data.last}) {
      pieces += std::to_string(static_cast<double>(time - RowsStep::kStart) / kSecond) + ' ';
    }
  }
  ADD_FAILURE() << Shown(spec) << (counts ? " of a counter" : " of a gauge") << "\npieces "
                << pieces << "\nall series\n"
                << Shown(expected) << "rows and series\n"
                << Shown(*answer);
}

std::pair<uint64_t, uint64_t> Seeds() {
  const char* asked = std::getenv("SONDE_ROWS_SEEDS");
  if (asked == nullptr) return {1, 300};
  const std::string text = asked;
  return {std::stoull(text), std::stoull(text.substr(text.find('-') + 1))};
}

TEST(RowsProperty, RowsAndSeriesTogetherAnswerWhatAllSeriesAnswer) {
  const auto [first, last] = Seeds();
  Tally tally;
  for (uint64_t seed = first; seed <= last; ++seed) {
    SCOPED_TRACE(seed);
    const bool counts = seed % 2 == 0;
    RowsStep step(seed, counts ? MetricType::kCounter : MetricType::kGauge);
    Questions questions(step);
    for (int i = 0; i < 20; ++i) AskOne(step, questions.Next(counts), counts, tally);
    if (tally.differences > 3) break;
  }
  EXPECT_EQ(tally.differences, 0u) << "of " << tally.questions;
  std::cout << tally.questions << " questions, " << tally.pieces << " pieces, " << tally.points
            << " points, " << tally.differences << " differences\n";
}

}  // namespace
}  // namespace sonde::rows_property_test
