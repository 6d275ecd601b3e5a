// A part of a query's answer: what the series of one node, or of some, come to, in a form that
// merges. Evaluate is one part of all series, finished; the tree makes a part at every node, merges
// them on the way up and finishes the one that the head ends with. Both give the same bits, however
// the nodes are grouped, because
//
//   - downsampling, rates and the values between points are made where all points of a series are,
//   - a group's sums are exact until the end (series/query/group_values.h), counts and extremes
//   anyway,
//   - every part of a group has a value at each time at which any part has a point.
//
// The last holds by itself for downsampled series, whose buckets are the same everywhere. Without
// downsampling a node cannot know at which times others have points. So it gives its values at all
// times of a grid on which points are expected, the step's ticks, and marks those at which it has
// points of its own. Times beside the grid are found by OddTimes in the merged part; if there are
// any, the question is asked again with those times in the grid.
//
// A group that only one node can have, one per host or one per series (`none`), needs no grid and
// is passed on as it came. So is every series of a query whose aggregator needs all values at once,
// such as the median: with the points next to the range, for the values that lead into it. The
// groups are then made at the end.
//
// Thread safety: values, and functions without state.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

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

// Times at which every node gives its values, beside those of its own points.
struct QueryGrid {
  Nanos step = 0;            // its multiples; 0: none
  std::vector<Nanos> times;  // and these, ascending, at most kMaxGridTimes

  bool Has(Nanos time) const;
};

// One group, of the series that some nodes have of it.
struct GroupPart {
  Tags tags;                            // common to all series
  std::vector<std::string> other_keys;  // that differ or are not everywhere; ascending
  std::vector<Nanos> times;             // ascending
  std::vector<bool> points;             // whether a series has a point there
  bool counts = false;                  // all are counters
  GroupValues values{Aggregator::kNone};
  std::string encoded;  // these bytes are the same group; empty: it has to be encoded
};

struct QueryPart {
  std::vector<std::string> keys;  // that the query groups by
  // In the order of their tags' values of those, or of all where every series is kept.
  std::vector<GroupPart> groups;

  size_t Points() const;
};

// What the values of its parts are: the aggregator, or kNone where every series is kept.
Aggregator ValuesOf(const QuerySpec& spec);
// Whether parts of one group may come from several nodes. A host is one node.
bool GroupsSpanNodes(const QuerySpec& spec);

// The part of `series`, which all match the query; that is one that CheckQuery accepts. kLimit if
// it would be larger than the bounds above. Without a grid it is that of all series there are,
// alone and without bounds.
Result<QueryPart> EvaluatePart(const QuerySpec& spec, std::vector<SeriesData> series,
                               const QueryGrid* grid);
// Whether reduced series of a counter answer with a part: of sums. Nodes that have ended are in
// their rows, and not among those that can be asked.
bool ReducedSumsCounters(const QuerySpec& spec);
// That part, from series with the tag `stat` (ReducedRange, ReducedNeeds). Without the tags that
// reduction dropped.
Result<QueryPart> EvaluateReducedPart(const QuerySpec& spec, const std::vector<SeriesData>& reduced,
                                      const QueryGrid& grid);
// A part of nothing.
QueryPart EmptyPart(const QuerySpec& spec);
// Adds others' part. kLimit if the result would be too large; `part` is of no more use then.
Status MergePart(const QuerySpec& spec, QueryPart others, QueryPart& part);
// The times of points that were not in the grid and at which other parts may lack their values,
// ascending; if there are any, the merged part is not the answer.
std::vector<Nanos> OddTimes(const QuerySpec& spec, const QueryPart& part, const QueryGrid& grid);
// Adds such times to the grid. kLimit if it has too many then.
Status AddTimes(const QuerySpec& spec, const std::vector<Nanos>& odd, QueryGrid& grid);
// Says of all groups of a part that their series differ in that tag.
void AddOtherKey(const std::string& key, QueryPart& part);
// Gives all series of a part one tag more, such as `job` where those of several steps come
// together. Not one that the query groups by, and not where every series is kept: they are in its
// order.
void TagPart(std::string_view key, std::string_view value, QueryPart& part);
// The answer.
std::vector<QueryResult> FinishPart(const QuerySpec& spec, const QueryPart& part);

// kLimit if it would have more than kMaxPartBytes.
Result<std::string> EncodePart(const QueryPart& part);
// For the query that was asked. Trusts nothing: what decodes is within the bounds above. The groups
// keep their bytes, so that one that is passed on need not be encoded again.
Result<QueryPart> DecodePart(const QuerySpec& spec, std::string_view bytes);

// For the question as it goes down the tree.
void EncodeGrid(const QueryGrid& grid, std::string& out);
Result<QueryGrid> DecodeGrid(std::string_view bytes);

}  // namespace sonde
