#include "daemon/tree/node_set.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace sonde::tree {
namespace {

// Looking for that many ranges in a set of `in` costs less than going through all of these.
bool AreFew(size_t ranges, size_t in) {
  return ranges * static_cast<size_t>(std::bit_width(in)) < in;
}

}  // namespace

template <typename At>
At NodeSet::FirstFrom(At at, At end, uint32_t node, bool search) {
  if (search) {
    return std::lower_bound(at, end, node, [](const Range& r, uint32_t n) { return r.last < n; });
  }
  while (at != end && at->last < node) ++at;
  return at;
}

size_t NodeSet::size() const {
  if (many_ != nullptr) return many_->size;
  return empty() ? 0 : one_.last - one_.first + 1;
}

bool NodeSet::Has(uint32_t node) const {
  const auto mine = all();
  const auto at = FirstFrom(mine.begin(), mine.end(), node, true);
  return at != mine.end() && at->first <= node;
}

bool NodeSet::HasAll(const NodeSet& other) const {
  if (SharesWith(other)) return true;
  if (size() < other.size()) return false;
  const auto mine = all();
  const auto theirs = other.all();
  const bool few = AreFew(theirs.size(), mine.size());
  auto at = mine.begin();
  for (const Range& r : theirs) {
    at = FirstFrom(at, mine.end(), r.first, few);
    if (at == mine.end() || at->first > r.first || at->last < r.last) return false;
  }
  return true;
}

bool NodeSet::Intersects(const NodeSet& other) const {
  if (SharesWith(other)) return !empty();
  auto few = all();
  auto many = other.all();
  if (few.size() > many.size()) std::swap(few, many);
  const bool search = AreFew(few.size(), many.size());
  auto at = many.begin();
  for (const Range& r : few) {
    at = FirstFrom(at, many.end(), r.first, search);
    if (at == many.end()) return false;
    if (at->first <= r.last) return true;
  }
  return false;
}

NodeSet NodeSet::Without(const NodeSet& other) const {
  if (SharesWith(other)) return {};
  NodeSet rest;
  const auto theirs = other.all();
  auto first = theirs.begin();
  const auto keep = [&rest](const Range& r) { AddRange(rest.Own(), r); };
  for (Range r : all()) {
    first = FirstFrom(first, theirs.end(), r.first, false);
    for (auto at = first; at != theirs.end() && at->first <= r.last; ++at) {
      if (at->first > r.first) keep({r.first, at->first - 1});
      r.first = at->last + 1;
    }
    if (r.first <= r.last) keep(r);
  }
  return rest;
}

// What is not shared keeps its memory.
void NodeSet::Clear() {
  one_ = {kMaxNodes, kMaxNodes};
  if (many_.use_count() > 1) many_ = nullptr;
  if (many_ == nullptr) return;
  many_->ranges.clear();
  many_->size = 0;
}

// Our ranges, to be changed.
NodeSet::Many& NodeSet::Own() {
  if (many_.use_count() == 1) return *many_;
  const auto mine = all();
  many_ = std::make_shared<Many>(Many{{mine.begin(), mine.end()}, size()});
  return *many_;
}

void NodeSet::Add(const NodeSet& other) {
  constexpr size_t kFew = 4;  // for which places are looked for; of more all are gone through
  if (other.empty() || SharesWith(other)) return;
  if (empty() && many_ == nullptr) {
    *this = other;
    return;
  }
  if (HasAll(other)) return;
  if (other.ranges() > kFew) return Merge(other);
  Many& mine = Own();
  for (const Range& r : other.all()) AddRange(mine, r);
}

void NodeSet::AddRange(Many& many, const Range& range) {
  std::vector<Range>& ranges = many.ranges;
  // The first range that touches it or lies behind it, and the first behind it.
  const auto from =
      std::lower_bound(ranges.begin(), ranges.end(), range.first,
                       [](const Range& a, uint32_t first) { return a.last + 1 < first; });
  auto to = from;
  Range all = range;
  size_t had = 0;
  for (; to != ranges.end() && to->first <= range.last + 1; ++to) {
    all.first = std::min(all.first, to->first);
    all.last = std::max(all.last, to->last);
    had += to->last - to->first + 1;
  }
  many.size += all.last - all.first + 1 - had;
  if (from == to) {
    ranges.insert(from, all);
  } else {
    *from = all;
    ranges.erase(from + 1, to);
  }
}

// Where theirs has all of ours, it is shared.
void NodeSet::Merge(const NodeSet& other) {
  const auto ours = all();
  const auto theirs = other.all();
  auto merged = std::make_shared<Many>();
  merged->ranges.reserve(ours.size() + theirs.size());
  auto our = ours.begin();
  auto their = theirs.begin();
  while (our != ours.end() || their != theirs.end()) {
    const bool is_theirs =
        our == ours.end() || (their != theirs.end() && their->first < our->first);
    const Range next = is_theirs ? *their++ : *our++;
    if (!merged->ranges.empty() && next.first <= merged->ranges.back().last + 1) {
      Range& last = merged->ranges.back();
      last.last = std::max(last.last, next.last);
    } else {
      merged->ranges.push_back(next);
    }
  }
  for (const Range& r : merged->ranges) merged->size += r.last - r.first + 1;
  if (merged->size == other.size()) {
    *this = other;
  } else {
    many_ = std::move(merged);
  }
}

bool NodeSet::operator==(const NodeSet& other) const {
  if (SharesWith(other)) return true;
  return size() == other.size() && std::ranges::equal(all(), other.all());
}

void NodeSet::Encode(ByteWriter& w) const {
  const auto mine = all();
  w.Varint(mine.size());
  uint32_t next = 0;
  for (const Range& r : mine) {
    w.Varint(r.first - next);
    w.Varint(r.last - r.first);
    next = r.last + 2;
  }
}

void NodeSet::Decode(ByteReader& r) {
  *this = NodeSet();
  const size_t count = r.Count(2, kMaxRanges);
  auto many = count > 1 ? std::make_shared<Many>() : nullptr;
  if (many != nullptr) many->ranges.reserve(count);
  uint64_t next = 0;
  for (size_t i = 0; i < count; ++i) {
    const uint64_t gap = r.Varint();
    const uint64_t more = r.Varint();
    if (gap >= kMaxNodes || more >= kMaxNodes || next + gap + more >= kMaxNodes) r.Fail();
    if (!r.ok()) return;
    const Range range{static_cast<uint32_t>(next + gap), static_cast<uint32_t>(next + gap + more)};
    next = uint64_t{range.last} + 2;
    if (many == nullptr) {
      one_ = range;
    } else {
      many->ranges.push_back(range);
      many->size += range.last - range.first + 1;
    }
  }
  many_ = std::move(many);
}

}  // namespace sonde::tree
