#include "daemon/tree/ended_parts.h"

#include <algorithm>
#include <utility>

namespace sonde::tree {

bool EndedParts::Add(const FrameInfo& info, const Schema& schema, std::span<const Reduced> values,
                     TickMerger::Source source) {
  if (info_.nodes.Intersects(info.nodes)) return false;
  const std::vector<uint32_t> columns = union_.ColumnsOf(schema);
  values_.resize(union_.size());
  const size_t n = std::min(values.size(), columns.size());
  for (size_t i = 0; i < n; ++i) {
    if (columns[i] != SeriesUnion::kLeftOut) values_[columns[i]].Merge(values[i]);
  }
  info_.stream = Stream::kEnded;
  info_.tick = std::max(info_.tick, info.tick);
  info_.nodes.Add(info.nodes);
  sources_.push_back(source);
  return true;
}

EndedParts::Part EndedParts::Take() {
  Part part{std::exchange(info_, {}), union_.schema(), std::move(values_),
            std::exchange(sources_, {})};
  values_.assign(union_.size(), Reduced());
  return part;
}

}  // namespace sonde::tree
