// Answers about the whole step that are put together: of most times from its reduced rows, of the
// others from the nodes' own series.
//
// Rows give what the series give (docs/queries.md) where every series that is there has a value in
// each row. They do not where a node is missing, comes or goes: then a series has points beside the
// ticks, or values on the line between two of its points, of which no row knows. Such times are cut
// out. A piece of the answer is made from the nodes' series of a little more than these times:
// a rate needs the point before, a value between two points both of them, and a bucket all that is
// in it. So a piece is what the series of the whole range would give there.
//
// Which rows are not right is known from
//   - what the caller knows of nodes that were absent, came or went (profiles/model/presence.h),
//   - the number of values in the rows, of series that came, went or were missing for a while. A
//     series that is missing may be the one that comes back later, so rows are not right from the
//     first that has fewer values to the last before it has more again.
// A series that comes in the very tick in which another goes is not noticed, unless a node comes or
// goes with it.
//
// Thread safety: values, and functions without state.
#pragma once

#include <cstddef>
#include <vector>

#include "core/time.h"
#include "series/query/query.h"

namespace sonde {

// The part of an answer that the nodes' series have to give.
struct QueryPiece {
  TimeRange times;  // of the answer: of points, or starts of buckets
  TimeRange data;   // the points of the series that this needs
};

struct CutQuery {
  std::vector<QueryPiece> pieces;  // ascending, and apart from each other
  // The reduced series without rows that are not right: they answer at all other times.
  std::vector<SeriesData> rows;
};

// Whether a question that rows answer (ReducedNeeds), or the number of their values, depends on a
// series with the tag `stat`.
bool PiecesNeed(const QuerySpec& spec, const Series& reduced);
// `reduced`: the series of ReducedRange that PiecesNeed, and that match the query, of a step that
// samples every `period`. `absences`: times, ascending and apart, whose rows are not right, or at
// which a node came or went (absences.h). `running`: nothing is asked of the time behind the newest
// row if that is right, and where there are no rows only if nodes came or went: what the nodes have
// there is not in a row yet.
CutQuery CutPieces(const QuerySpec& spec, const std::vector<SeriesData>& reduced,
                   const std::vector<TimeRange>& absences, Nanos period, bool running = false);

// How many points the nodes' series have in a range, as far as the rows tell.
size_t PointsIn(const TimeRange& range, const std::vector<SeriesData>& reduced);

// Whether the nodes' series that were read of some time lack what its rows have: a block was lost,
// or cannot be read, or what is left of a thinned series lies outside that time. Of counters it
// looks at the totals, and so needs the points before that tell the counters' values
// (Earlier::kCounted).
bool SeriesLack(const TimeRange& data, const std::vector<SeriesData>& series,
                const std::vector<SeriesData>& reduced, Nanos period);

// The question for which nodes are asked to give a piece: its answer has all points of the piece,
// and may have others. Nodes read whole hours (DataRange).
QuerySpec QuestionOf(const QuerySpec& spec, const QueryPiece& piece);
// Where the series themselves are not at hand, SeriesLack goes by two questions: the nodes' answer
// to the first one is compared with the rows, of which the series must have as much.
QuerySpec QuestionOfAll(const QuerySpec& spec, const QueryPiece& piece, bool counts);
bool SeriesLack(const TimeRange& data, const std::vector<QueryResult>& all,
                const std::vector<SeriesData>& reduced, Nanos period, bool counts);

// Of results those points that are in the piece.
std::vector<QueryResult> InPiece(const QueryPiece& piece, std::vector<QueryResult> results);
// What the series that were read for a piece give for it.
Result<std::vector<QueryResult>> EvaluatePiece(const QuerySpec& spec, const QueryPiece& piece,
                                               std::vector<SeriesData> series);
// Puts the answer of a piece into that of the rows. `counts`: the metric is a counter.
void JoinPiece(const QuerySpec& spec, const QueryPiece& piece, std::vector<QueryResult> of_series,
               bool counts, std::vector<QueryResult>& answer);

}  // namespace sonde
