#include "daemon/node/ask/answer.h"

#include <iterator>
#include <new>
#include <utility>
#include <vector>

#include "series/query/steps.h"
#include "series/store/past.h"
#include "series/store/task_ranks.h"

namespace sonde::node {

Result<QueryPart> AnswerFrom(std::span<const GroupStore* const> stores, const QuerySpec& spec,
                             const QueryGrid& grid, const NodeTags& node, const GroupStore* past) {
  const Result<SeriesFilter> filter = SeriesFilter::Make(spec);
  if (!filter.ok()) return filter.status();
  const auto name = [&](Tags& tags) {
    AddFirstRank(node.first_rank, tags);
    tags.Set("host", node.host);
  };
  const auto wanted = [&](const Series& series) {
    if (series.metric.name != spec.metric) return false;
    Tags tags = series.tags;
    name(tags);
    return filter->Matches(series.metric.name, tags);
  };
  const TimeRange range = DataRange(spec);
  const Earlier earlier = query_steps::HoldsCounters(spec) ? Earlier::kCounted : Earlier::kNone;
  try {
    std::vector<SeriesData> series;
    for (const GroupStore* store : stores) {
      std::vector<SeriesData> found = store->Read(wanted, range.first, range.last, earlier);
      std::move(found.begin(), found.end(), std::back_inserter(series));
    }
    if (past != nullptr) PutPast(past->Read(wanted, range.first, range.last), series);
    for (SeriesData& data : series) name(data.series.tags);
    return EvaluatePart(spec, std::move(series), &grid);
  } catch (const std::bad_alloc&) {
    return Status(Code::kLimit, "query of '" + spec.metric + "': a node has no memory for it");
  }
}

}  // namespace sonde::node
