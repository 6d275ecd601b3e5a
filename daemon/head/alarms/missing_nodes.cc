#include "daemon/head/alarms/missing_nodes.h"

#include <algorithm>
#include <utility>

namespace sonde::head {

void MissingNodes::OnNode(uint32_t index, Nanos now) {
  if (joined_.size() <= index) {
    joined_.resize(index + size_t{1}, 0);
    is_young_.resize(index + size_t{1}, false);
  }
  if (joined_[index] == 0) ++present_;
  joined_[index] = now;
  if (!is_young_[index]) young_.push_back(index);
  is_young_[index] = true;
}

void MissingNodes::OnGone(uint32_t index) {
  if (index < joined_.size() && std::exchange(joined_[index], 0) != 0) --present_;
}

bool MissingNodes::Counts(uint32_t node, Nanos tick) const {
  return joined_[node] != 0 && joined_[node] <= tick - 2 * period_;
}

Reduced MissingNodes::OfRow(Nanos tick, const tree::NodeSet& nodes) {
  std::erase_if(young_, [&](uint32_t node) {
    const bool counts = joined_[node] == 0 || Counts(node, tick);
    if (counts) is_young_[node] = false;  // and in all later rows
    return counts;
  });
  if (nodes.size() < present_) return Count(tick, nodes);
  Reduced nobody;  // as ever
  nobody.count = static_cast<double>(present_);
  nobody.sum = nobody.sum_sq = nobody.min = nobody.max = 0;
  return nobody;
}

Reduced MissingNodes::Count(Nanos tick, const tree::NodeSet& nodes) const {
  Reduced missing;
  const auto all = static_cast<uint32_t>(joined_.size());
  nodes.ForEachOther(all, [&](uint32_t node) {
    if (Counts(node, tick)) missing.Add(1, {node, Owner::kNobody});
  });
  const auto uncounted = std::count_if(young_.begin(), young_.end(), [&](uint32_t node) {
    return joined_[node] != 0 && !Counts(node, tick);
  });
  uint32_t first = nodes.first();  // that counts, of those in the row
  while (first < all && !(Counts(first, tick) && nodes.Has(first))) ++first;
  if (first >= all) return missing;
  Reduced there;
  there.count = static_cast<double>(present_) - static_cast<double>(uncounted) - missing.count;
  there.min_owner = there.max_owner = {first, Owner::kNobody};
  there.sum = there.sum_sq = there.min = there.max = 0;
  missing.Merge(there);
  return missing;
}

}  // namespace sonde::head
