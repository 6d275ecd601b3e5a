// A part of a query's answer: the aggregate of the series of one or several nodes, in a form that
// merges. Evaluate makes one part of all series and finishes it; the tree makes a part at every
// node, merges the parts on the way up and finishes the head's. Both give the same bits, however
// the nodes are grouped, because
//
//   - downsampling, rates and the values between points are made where all points of a series are,
//   - a group's sums are exact until the end (series/query/group_values.h), counts and extremes
//   anyway,
//   - every part of a group has a value at each time at which any part has a point.
//
// The last holds anyway for downsampled series, whose buckets are the same everywhere. Without
// downsampling a node cannot know at which times others have points. So it gives its values at all
// times of a grid on which points are expected, the step's ticks, and marks those at which it has
// points of its own. Times beside the grid are found by OddTimes in the merged part; if there are
// any, the question is asked again with those times in the grid.
//
// A group that only one node can have, one per host or one per series (`none`), needs no grid and
// is passed on unchanged. So is every series of a query whose aggregator needs all values at once,
// such as the median: with the points next to the range, which the values at its edges need. The
// groups are then made at the end.
//
// Thread safety: values, and functions without state.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/job.h"
#include "core/metric.h"
#include "core/status.h"
#include "core/time.h"
#include "series/query/group_values.h"
#include "series/query/query.h"

namespace sonde {

// Bounds of a part, which is what one node sends to another. A larger one is refused.
inline constexpr size_t kMaxPartBytes = 6u << 20;
inline constexpr size_t kMaxPartPoints = 1u << 20;
inline constexpr size_t kMaxPartGroups = 1u << 16;
inline constexpr size_t kMaxGroupKeys = 1024;  // keys of tags among the series of a group
inline constexpr size_t kMaxGridTimes = 8192;  // beside the ticks

// Times at which every node gives its values, beside the times of its own points.
struct QueryGrid {
  Nanos step = 0;            // multiples of it; 0: none
  std::vector<Nanos> times;  // and these, ascending, at most kMaxGridTimes

  bool Has(Nanos time) const;
  // The first one after it; INT64_MAX if there is none.
  Nanos After(Nanos time) const;
  // Adds those of [first, last], which are ascending. False if they are more than kMaxPartPoints.
  bool AddTo(Nanos first, Nanos last, std::vector<Nanos>& times) const;
};

// One group, made of the series of some nodes.
struct GroupPart {
  Tags tags;                            // common to all series
  std::vector<std::string> other_keys;  // with several values; ascending
  std::vector<Nanos> times;             // ascending
  std::vector<bool> points;             // whether a series has a point there
  bool counts = false;                  // all are counters
  GroupValues values{Aggregator::kNone};
  std::string encoded;  // these bytes are the same group; empty: it has to be encoded
};

struct QueryPart {
  std::vector<std::string> keys;  // that the query groups by
  // In the order of the values of these tags, or of all tags where every series is kept.
  std::vector<GroupPart> groups;

  size_t Points() const;
};

// The times at which all parts have values: buckets are a grid of their own.
QueryGrid GridOf(const QuerySpec& spec, const QueryGrid& ticks);
// How the values of its parts are aggregated: kNone where every series is kept.
Aggregator ValuesOf(const QuerySpec& spec);
// Whether parts of one group may come from several nodes. A host is one node.
bool GroupsSpanNodes(const QuerySpec& spec);

// The part of `series`, which all match the query; CheckQuery must accept the query. kLimit if the
// part would be larger than the bounds above. Without a grid `series` are all there are, and there
// are no bounds.
Result<QueryPart> EvaluatePart(const QuerySpec& spec, std::vector<SeriesData> series,
                               const QueryGrid* grid);
// Whether reduced series of a counter answer with a part: of sums. Their rows include nodes that
// have ended, which cannot be asked any more.
bool ReducedSumsCounters(const QuerySpec& spec);
// That part, from series with the tag `stat` (ReducedRange, ReducedNeeds). Without the tags that
// reduction dropped.
Result<QueryPart> EvaluateReducedPart(const QuerySpec& spec, const std::vector<SeriesData>& reduced,
                                      std::span<const PresenceRun> presence, const QueryGrid& grid);
// A part of nothing.
QueryPart EmptyPart(const QuerySpec& spec);
// Adds the part of others, made for the same question. kLimit if the result would be too large;
// `part` is then useless.
Status MergePart(const QuerySpec& spec, const QueryGrid& grid, QueryPart others, QueryPart& part);
// The times of points outside the grid, at which other parts may lack values; ascending. If there
// are any, the merged part is not the answer.
std::vector<Nanos> OddTimes(const QuerySpec& spec, const QueryPart& part, const QueryGrid& grid);
// Adds such times to the grid. kLimit if the grid then has too many.
Status AddTimes(const QuerySpec& spec, const std::vector<Nanos>& odd, QueryGrid& grid);
// Notes in all groups of a part that their series differ in that tag.
void AddOtherKey(const std::string& key, QueryPart& part);
// Gives all series of a part one more tag, such as `job` where series of several steps come
// together. Not for a tag that the query groups by, and not where every series is kept: the series
// are in the order of their tags.
void TagPart(std::string_view key, std::string_view value, QueryPart& part);
// The answer.
std::vector<QueryResult> FinishPart(const QuerySpec& spec, const QueryPart& part);

// kLimit if it would have more than kMaxPartBytes.
Result<std::string> EncodePart(const QueryPart& part);
// Decodes a part for `spec`. Trusts nothing: a decoded part is within the bounds above. The groups
// keep their bytes, so that a group that is passed on need not be encoded again.
Result<QueryPart> DecodePart(const QuerySpec& spec, std::string_view bytes);

// The grid as bytes, for the question that goes down the tree.
void EncodeGrid(const QueryGrid& grid, std::string& out);
Result<QueryGrid> DecodeGrid(std::string_view bytes);

}  // namespace sonde
