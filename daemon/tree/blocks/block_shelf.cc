#include "daemon/tree/blocks/block_shelf.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/log.h"
#include "series/store/past.h"

namespace sonde::tree {
namespace {

using Item = BlockShelf::Item;
using State = BlockShelf::State;

constexpr size_t kRowsTogether = 128;  // of blocks that are put together
constexpr uint32_t kMostThinning = 1u << 24;

bool Movable(const Item& item, bool fresh_only) {
  return item.state != State::kSent && (!fresh_only || item.fresh());
}

// Blocks put together have at most the sum of these rows.
size_t RowsOf(const Item& item, uint32_t factor) { return item.samples / factor + 1; }

bool Together(const Item& a, const Item& b) {
  return a.base->id() == b.base->id() && a.fresh() == b.fresh();
}

}  // namespace

template <typename F>
size_t BlockShelf::Sum(F of) const {
  size_t sum = 0;
  for (const auto& [name, group] : groups_) {
    for (const Item& item : group.items) sum += of(item);
  }
  return sum;
}

size_t BlockShelf::stored_bytes() const {
  return settled_bytes_ + Sum([](const Item& item) {
           return item.state == State::kStored ? item.bytes->size() : item.archived;
         });
}

size_t BlockShelf::StoredWith(const Item& item) const {
  return stored_bytes() - item.archived + item.bytes->size();
}

size_t BlockShelf::fresh_bytes() const {
  return Sum([](const Item& item) { return item.fresh() ? item.bytes->size() : 0; });
}

size_t BlockShelf::pending_bytes() const {
  return Sum(
      [](const Item& item) { return item.state != State::kStored ? item.bytes->size() : 0; });
}

size_t BlockShelf::sent_bytes() const {
  return Sum([](const Item& item) { return item.state == State::kSent ? item.bytes->size() : 0; });
}

size_t BlockShelf::kept_bytes() const {
  size_t sum = Sum([](const Item& item) { return item.bytes->size(); });
  // Schemas count, or an application whose metrics change all the time would fill the memory.
  for (const auto& [name, group] : groups_) {
    const Schema* before = nullptr;
    for (const Item& item : group.items) {
      if (item.base.get() != before) sum += item.base->memory();
      before = item.base.get();
    }
  }
  return sum;
}

Nanos BlockShelf::oldest_sent() const {
  Nanos oldest = 0;
  for (const auto& [name, group] : groups_) {
    for (const Item& item : group.items) {
      if (item.state != State::kSent) continue;
      oldest = oldest == 0 ? item.sent_at : std::min(oldest, item.sent_at);
    }
  }
  return oldest;
}

Nanos BlockShelf::next_due() const {
  Nanos next = std::numeric_limits<Nanos>::max();
  for (const auto& [name, group] : groups_) {
    for (const Item& item : group.items) {
      if (item.state == State::kSent) next = std::min(next, item.due);
    }
  }
  return next;
}

void BlockShelf::SetLimits(const Limits& limits) {
  limits_ = limits;
  Fit();
}

void BlockShelf::Add(const std::string& name, const SealedBlock& block) {
  Group& group = groups_[name];
  Item item;
  item.first = item.last = block.sequence;
  item.base = block.schema;
  item.bytes = block.bytes;
  item.samples = block.info.rows;
  group.items.push_back(std::move(item));
  if (group.factor > 1) {
    BlockEncoder encoder;
    Regroup(group, Scope::kFresh, group.factor, kThinnedForShare, encoder);
  }
  Fit();
}

BlockShelf::Next BlockShelf::NextToSend(Nanos now, bool last) {
  Next fresh;
  Next replacing;
  for (auto& [name, group] : groups_) {
    for (Item& item : group.items) {
      if (last && !item.fresh()) continue;
      if (item.state == State::kSent && item.due <= now) return {&name, &item};
      if (item.state != State::kWaiting) continue;
      Next& next = item.fresh() ? fresh : replacing;
      if (next.item == nullptr) next = {&name, &item};
    }
  }
  if (fresh.item == nullptr) return replacing;
  const bool fits = StoredWith(*fresh.item) <= limits_.share;
  return fits || replacing.item == nullptr ? fresh : replacing;
}

Item* BlockShelf::Sent(const std::string& name, uint64_t sequence) {
  const auto group = groups_.find(name);
  if (group == groups_.end()) return nullptr;
  for (Item& item : group->second.items) {
    if (item.last == sequence && item.state == State::kSent) return &item;
  }
  return nullptr;
}

void BlockShelf::Resend() {
  for (auto& [name, group] : groups_) {
    for (Item& item : group.items) item.due = 0;
  }
}

void BlockShelf::NewArchive() {
  settled_bytes_ = 0;
  for (auto& [name, group] : groups_) {
    std::erase_if(group.items, [](const Item& item) { return !item.fresh(); });
  }
  Resend();
}

void BlockShelf::ThinFresh(size_t bytes, ThinReason reason) {
  if (fresh_bytes() <= bytes) return;
  BlockEncoder encoder;
  while (fresh_bytes() > bytes && ThinOnce(Scope::kFresh, reason, encoder)) {
  }
}

// Some of the share stays free, for what comes while finer blocks are being replaced.
void BlockShelf::Fit() {
  const auto whole = [this] {
    return settled_bytes_ + Sum([](const Item& item) { return item.bytes->size(); });
  };
  const size_t most = limits_.share - limits_.share / 8;
  if (whole() > most) {
    BlockEncoder encoder;
    while (whole() > most && ThinOnce(Scope::kAll, kThinnedForShare, encoder)) {
    }
  }
  ThinFresh(limits_.memory / 2, kThinnedForSlow);
  Settle();
}

void BlockShelf::Settle() {
  while (kept_bytes() > limits_.memory && Forget()) {
  }
}

// Forgets the oldest block that is stored, else the oldest of all.
bool BlockShelf::Forget() {
  Group* from = nullptr;
  bool stored = false;
  for (auto& [name, group] : groups_) {
    if (group.items.empty()) continue;
    const bool is_stored = group.items.front().state == State::kStored;
    const bool better = from == nullptr || (is_stored && !stored) ||
                        (is_stored == stored && group.items.size() > from->items.size());
    if (!better) continue;
    from = &group;
    stored = is_stored;
  }
  if (from == nullptr || (!stored && from->items.size() < 2)) return false;
  const Item& oldest = from->items.front();
  settled_bytes_ += stored ? oldest.bytes->size() : oldest.archived;
  if (oldest.fresh()) dropped_samples_ += oldest.samples;
  from->items.pop_front();
  return true;
}

bool BlockShelf::ThinOnce(Scope scope, ThinReason reason, BlockEncoder& encoder) {
  std::vector<std::pair<size_t, Group*>> largest;
  for (auto& [name, group] : groups_) {
    if (IsPastGroup(name)) continue;  // neighbours are in no order; there are few of them
    size_t bytes = 0;
    for (const Item& item : group.items) {
      if (Movable(item, scope == Scope::kFresh)) bytes += item.bytes->size();
    }
    if (bytes > 0) largest.emplace_back(bytes, &group);
  }
  std::sort(largest.rbegin(), largest.rend());
  return std::any_of(largest.begin(), largest.end(), [&](const auto& one) {
    return ThinGroup(*one.second, scope, reason, encoder);
  });
}

// First neighbours are put together as they are; when that does not help, they are thinned by half.
bool BlockShelf::ThinGroup(Group& group, Scope scope, ThinReason reason, BlockEncoder& encoder) {
  uint32_t least = kMostThinning;
  for (const Item& item : group.items) {
    if (Movable(item, scope == Scope::kFresh)) least = std::min(least, item.factor);
  }
  if (least > 1 && Regroup(group, scope, least, reason, encoder)) return true;
  // A block of one row does not get smaller; others may.
  for (uint32_t factor = std::max(kLeastThinning, least * 2); factor < kMostThinning; factor *= 2) {
    if (!Regroup(group, scope, factor, reason, encoder)) continue;
    if (scope == Scope::kAll) group.factor = std::max(group.factor, factor);
    return true;
  }
  return false;
}

// Puts neighbours together while they fit into one block, thinned to `factor`. False if that
// changes nothing.
bool BlockShelf::Regroup(Group& group, Scope scope, uint32_t factor, ThinReason reason,
                         BlockEncoder& encoder) {
  const bool fresh_only = scope == Scope::kFresh;
  bool changed = false;
  for (size_t at = 0; at < group.items.size(); ++at) {
    if (!Movable(group.items[at], fresh_only)) continue;
    size_t rows = RowsOf(group.items[at], factor);
    size_t end = at + 1;
    while (end < group.items.size() && Movable(group.items[end], fresh_only) &&
           Together(group.items[at], group.items[end]) &&
           rows + RowsOf(group.items[end], factor) <= kRowsTogether) {
      rows += RowsOf(group.items[end++], factor);
    }
    const Item& first = group.items[at];
    const bool finer = first.factor < factor && first.samples > std::max<uint64_t>(first.factor, 1);
    if (end - at == 1 && !finer) continue;
    changed = Replace(group, at, end - at, factor, reason, encoder) || changed;
  }
  return changed;
}

bool BlockShelf::Replace(Group& group, size_t at, size_t count, uint32_t factor, ThinReason reason,
                         BlockEncoder& encoder) {
  const auto begin = group.items.begin() + static_cast<std::ptrdiff_t>(at);
  const auto end = begin + static_cast<std::ptrdiff_t>(count);
  Item whole;
  whole.first = begin->first;
  whole.last = (end - 1)->last;
  whole.base = begin->base;
  whole.factor = factor;
  whole.reasons = reason;
  std::vector<ThinSource> sources;
  for (auto item = begin; item != end; ++item) {
    sources.push_back({*item->bytes, item->weights});
    whole.factor = std::max(whole.factor, item->factor);
    whole.reasons |= item->reasons;
    whole.samples += item->samples;
    whole.archived += item->state == State::kStored ? item->bytes->size() : item->archived;
  }
  auto thinned = Thin(*whole.base, ShapeOf(*whole.base), sources, whole.factor, encoder);
  if (!thinned.ok()) {
    log::Error("{}; the blocks stay as they are", thinned.status().message());
    return false;
  }
  whole.bytes = std::move(thinned->bytes);
  whole.weights = std::move(thinned->weights);
  *begin = std::move(whole);
  group.items.erase(begin + 1, end);
  return true;
}

ThinnedShape BlockShelf::ShapeOf(const Schema& base) {
  constexpr size_t kMost = 8;
  for (const auto& [id, shape] : shapes_) {
    if (id == base.id()) return shape;
  }
  if (shapes_.size() == kMost) shapes_.pop_front();
  return shapes_.emplace_back(base.id(), ThinnedShape(*ThinnedSchema(base))).second;
}

}  // namespace sonde::tree
