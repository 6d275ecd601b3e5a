#include "daemon/tree/node_set.h"

#include <algorithm>

namespace sonde::tree {

size_t NodeSet::size() const {
  size_t n = 0;
  for (const Range& r : ranges_) n += r.last - r.first + 1;
  return n;
}

bool NodeSet::Has(uint32_t node) const {
  const auto at = std::lower_bound(ranges_.begin(), ranges_.end(), node,
                                   [](const Range& r, uint32_t n) { return r.last < n; });
  return at != ranges_.end() && at->first <= node;
}

bool NodeSet::HasAll(const NodeSet& other) const {
  auto mine = ranges_.begin();
  for (const Range& r : other.ranges_) {
    while (mine != ranges_.end() && mine->last < r.first) ++mine;
    if (mine == ranges_.end() || mine->first > r.first || mine->last < r.last) return false;
  }
  return true;
}

bool NodeSet::Intersects(const NodeSet& other) const {
  auto mine = ranges_.begin();
  for (const Range& r : other.ranges_) {
    while (mine != ranges_.end() && mine->last < r.first) ++mine;
    if (mine == ranges_.end()) return false;
    if (mine->first <= r.last) return true;
  }
  return false;
}

NodeSet NodeSet::Without(const NodeSet& other) const {
  NodeSet rest;
  auto theirs = other.ranges_.begin();
  for (Range r : ranges_) {
    while (theirs != other.ranges_.end() && theirs->last < r.first) ++theirs;
    for (auto at = theirs; at != other.ranges_.end() && at->first <= r.last; ++at) {
      if (at->first > r.first) rest.ranges_.push_back({r.first, at->first - 1});
      r.first = at->last + 1;
    }
    if (r.first <= r.last) rest.ranges_.push_back(r);
  }
  return rest;
}

void NodeSet::Add(const NodeSet& other) {
  constexpr size_t kFew =
      4;  // for which places are looked for; of more all ranges are gone through
  if (&other == this) return;
  if (other.ranges_.size() > kFew) return Merge(other.ranges_);
  for (const Range& r : other.ranges_) {
    // The first range that touches it or lies behind it, and the first behind it.
    const auto from =
        std::lower_bound(ranges_.begin(), ranges_.end(), r.first,
                         [](const Range& a, uint32_t first) { return a.last + 1 < first; });
    auto to = from;
    Range all = r;
    for (; to != ranges_.end() && to->first <= r.last + 1; ++to) {
      all.first = std::min(all.first, to->first);
      all.last = std::max(all.last, to->last);
    }
    if (from == to) {
      ranges_.insert(from, all);
    } else {
      *from = all;
      ranges_.erase(from + 1, to);
    }
  }
}

// In place: ours go to the end, and what is written never reaches what is still to be read.
void NodeSet::Merge(const std::vector<Range>& theirs) {
  const size_t ours = ranges_.size();
  ranges_.resize(ours + theirs.size());
  std::move_backward(ranges_.begin(), ranges_.begin() + static_cast<std::ptrdiff_t>(ours),
                     ranges_.end());
  size_t out = 0;
  size_t their = 0;
  for (size_t our = theirs.size(); our < ranges_.size() || their < theirs.size();) {
    const bool is_theirs = our == ranges_.size() ||
                           (their < theirs.size() && theirs[their].first < ranges_[our].first);
    const Range next = is_theirs ? theirs[their++] : ranges_[our++];
    if (out > 0 && next.first <= ranges_[out - 1].last + 1) {
      ranges_[out - 1].last = std::max(ranges_[out - 1].last, next.last);
    } else {
      ranges_[out++] = next;
    }
  }
  ranges_.resize(out);
}

void NodeSet::Encode(ByteWriter& w) const {
  w.Varint(ranges_.size());
  uint32_t next = 0;
  for (const Range& r : ranges_) {
    w.Varint(r.first - next);
    w.Varint(r.last - r.first);
    next = r.last + 2;
  }
}

void NodeSet::Decode(ByteReader& r) {
  ranges_.resize(r.Count(2, kMaxRanges));
  uint64_t next = 0;
  for (Range& range : ranges_) {
    const uint64_t gap = r.Varint();
    const uint64_t more = r.Varint();
    if (gap >= kMaxNodes || more >= kMaxNodes || next + gap + more >= kMaxNodes) r.Fail();
    if (!r.ok()) break;
    range = {static_cast<uint32_t>(next + gap), static_cast<uint32_t>(next + gap + more)};
    next = uint64_t{range.last} + 2;
  }
  if (!r.ok()) ranges_.clear();
}

}  // namespace sonde::tree
