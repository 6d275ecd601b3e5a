#include "daemon/tree/tick_merger.h"

#include <algorithm>

namespace sonde::tree {

TickMerger::Id TickMerger::AddContributor(Nanos joined) {
  contributors_.push_back({.id = next_id_, .joined = joined});
  return next_id_++;
}

TickMerger::Contributor* TickMerger::Find(Id id) {
  const auto at = std::find_if(contributors_.begin(), contributors_.end(),
                               [id](const Contributor& c) { return c.id == id; });
  return at == contributors_.end() ? nullptr : &*at;
}

void TickMerger::SetSchema(Id id, Schema::Ptr schema) {
  Contributor* contributor = Find(id);
  if (contributor == nullptr) return;
  const auto same = std::find_if(contributors_.begin(), contributors_.end(),
                                 [&](const Contributor& c) { return c.schema == schema; });
  if (same != contributors_.end()) {
    contributor->columns = same->columns;
    contributor->spreads = same->spreads;
  } else {
    contributor->columns = union_.ColumnsOf(*schema);
    contributor->spreads = union_.SpreadsOf(*schema, contributor->columns);
  }
  contributor->schema = std::move(schema);
  present_.clear();
}

TickMerger::Waiting& TickMerger::RowOf(Nanos tick) {
  const auto at = std::lower_bound(rows_.begin(), rows_.end(), tick,
                                   [](const Waiting& w, Nanos t) { return w.row.tick < t; });
  if (at != rows_.end() && at->row.tick == tick) return *at;
  Waiting waiting;
  if (!spare_.empty()) {
    waiting = std::move(spare_.back());
    spare_.pop_back();
  }
  Start(waiting.row, tick);
  waiting.parts.few.Clear();
  waiting.parts.many.clear();
  return *rows_.insert(at, std::move(waiting));
}

void TickMerger::Start(Row& row, Nanos tick) const {
  row.tick = tick;
  row.nodes.Clear();
  row.sources.clear();
  row.values.assign(union_.size(), Reduced());
  for (QuantileSketch& spread : row.spreads) spread.Clear();
  row.spreads.resize(union_.spreads());
}

bool TickMerger::Complete(const Row& row) const {
  return std::all_of(contributors_.begin(), contributors_.end(), [&](const Contributor& c) {
    return c.joined >= row.tick || c.last_tick >= row.tick ||
           (c.leaves != 0 && c.leaves < row.tick);
  });
}

void TickMerger::MergeInto(Row& row, const Contributor& from, const Frame& frame, uint32_t sender) {
  row.values.resize(union_.size());
  const size_t n = std::min(frame.values.size(), from.columns.size());
  for (size_t i = 0; i < n; ++i) row.values[from.columns[i]].Merge(frame.values[i]);
  row.spreads.resize(union_.spreads());
  const size_t spreads = std::min(frame.spreads.size(), from.spreads.size());
  for (size_t i = 0; i < spreads; ++i) {
    if (from.spreads[i] != SeriesUnion::kNoSpread) {
      row.spreads[from.spreads[i]].Merge(frame.spreads[i]);
    }
  }
  row.sources.push_back({sender, frame.number});
}

// --- Whose parts these are ---

// Sets that were parts of the tick before have no node in common: they need no comparing.
bool TickMerger::Intersects(const Parts& parts, const NodeSet& nodes) const {
  if (parts.few.Intersects(nodes)) return true;
  const auto in_last = [this](const NodeSet& part) {
    return std::any_of(last_parts_.many.begin(), last_parts_.many.end(),
                       [&](const NodeSet& last) { return last.SharesWith(part); });
  };
  const bool known = in_last(nodes);
  return std::any_of(parts.many.begin(), parts.many.end(), [&](const NodeSet& part) {
    if (part.SharesWith(nodes)) return true;
    return !(known && in_last(part)) && part.Intersects(nodes);
  });
}

void TickMerger::AddTo(Parts& parts, const NodeSet& nodes) {
  constexpr size_t kFew = 4;  // ranges
  if (nodes.ranges() <= kFew) {
    parts.few.Add(nodes);
  } else {
    parts.many.push_back(nodes);
  }
}

NodeSet TickMerger::NodesOf(const Parts& parts) {
  NodeSet nodes = parts.few;
  for (const NodeSet& part : parts.many) nodes.Add(part);
  return nodes;
}

// They come in any order.
void TickMerger::TellNodes(Waiting& waiting) {
  Parts& parts = waiting.parts;
  const auto same = [](const NodeSet& a, const NodeSet& b) { return a.SharesWith(b); };
  const bool as_last = parts.few == last_parts_.few &&
                       std::is_permutation(parts.many.begin(), parts.many.end(),
                                           last_parts_.many.begin(), last_parts_.many.end(), same);
  if (!as_last) {
    last_nodes_ = NodesOf(parts);
    std::swap(last_parts_, parts);
  }
  waiting.row.nodes = last_nodes_;
}

// --- Parts come ---

TickMerger::Fate TickMerger::Add(Id id, const Frame& frame, uint32_t sender) {
  Contributor* contributor = Find(id);
  if (contributor == nullptr) return Fate::kTooLate;
  contributor->last_tick = std::max(contributor->last_tick, frame.tick);
  if (frame.tick <= emitted_) {
    const Fate fate = AddLate(*contributor, frame, sender);
    EmitComplete();
    return fate;
  }
  Waiting& waiting = RowOf(frame.tick);
  Fate fate = Fate::kMerged;
  if (Intersects(waiting.parts, frame.nodes)) {
    fate = NodesOf(waiting.parts).HasAll(frame.nodes) ? Fate::kCovered : Fate::kOverlaps;
    // The frame that came first goes on for both.
    if (fate == Fate::kCovered) waiting.row.sources.push_back({sender, frame.number});
  } else {
    MergeInto(waiting.row, *contributor, frame, sender);
    AddTo(waiting.parts, frame.nodes);
  }
  EmitComplete();
  return fate;
}

TickMerger::Fate TickMerger::AddLate(const Contributor& from, const Frame& frame, uint32_t sender) {
  const size_t at = history_.CountWhile([&](const Emitted& e) { return e.tick < frame.tick; });
  const bool known = at < history_.size() && history_[at].tick == frame.tick;
  if (!known && at == 0 && history_.size() >= remember_) return Fate::kTooLate;
  // Otherwise it is a tick of which no part has come.
  if (!known) history_.Insert(at) = {frame.tick, {}};
  NodeSet& nodes = history_[at].nodes;
  if (nodes.Intersects(frame.nodes)) {
    return nodes.HasAll(frame.nodes) ? Fate::kRepeated : Fate::kOverlaps;
  }
  nodes.Add(frame.nodes);
  if (history_.size() > remember_) history_.PopFront();
  Start(late_, frame.tick);
  MergeInto(late_, from, frame, sender);
  late_.nodes = frame.nodes;
  emit_(late_, true);
  return Fate::kMerged;
}

void TickMerger::Remove(Id id) {
  Contributor* contributor = Find(id);
  if (contributor == nullptr) return;
  KeepColumns(*contributor);
  contributors_.erase(contributors_.begin() + (contributor - contributors_.data()));
  present_.clear();
  EmitComplete();
}

void TickMerger::KeepColumns(const Contributor& gone) {
  if (oldest() != 0 && gone.last_tick >= oldest()) gone_.emplace_back(gone.last_tick, gone.columns);
}

bool TickMerger::Leave(Id id, Nanos until) {
  Contributor* contributor = Find(id);
  if (contributor != nullptr) contributor->leaves = until;
  return contributor != nullptr;
}

bool TickMerger::idle() const {
  return std::all_of(contributors_.begin(), contributors_.end(), [](const Contributor& c) {
    return c.leaves != 0 || c.joined == INT64_MAX;  // the latter has nothing for ticks
  });
}

void TickMerger::EmitFirst() {
  Waiting waiting = std::move(rows_.front());
  rows_.erase(rows_.begin());
  TellNodes(waiting);
  Row& row = waiting.row;
  row.values.resize(union_.size());
  row.spreads.resize(union_.spreads());
  emitted_ = row.tick;
  history_.Push() = {row.tick, row.nodes};
  if (history_.size() > remember_) history_.PopFront();
  const size_t left = std::erase_if(contributors_, [this](const Contributor& c) {
    return c.leaves != 0 && c.leaves <= emitted_;
  });
  const size_t over = std::erase_if(gone_, [this](const auto& g) { return g.first < emitted_; });
  if (left + over > 0) present_.clear();
  emit_(row, false);
  if (spare_.size() < kMaxSpare) spare_.push_back(std::move(waiting));
}

const std::vector<bool>& TickMerger::Present() {
  if (present_.size() == union_.size()) return present_;
  present_.assign(union_.size(), false);
  for (const auto& [newest, columns] : gone_) {
    for (const uint32_t column : columns) present_[column] = true;
  }
  for (const Contributor& contributor : contributors_) {
    for (const uint32_t column : contributor.columns) present_[column] = true;
  }
  return present_;
}

void TickMerger::EmitComplete() {
  while (!rows_.empty() && Complete(rows_.front().row)) EmitFirst();
}

void TickMerger::EmitUpTo(Nanos tick) {
  while (!rows_.empty() && rows_.front().row.tick <= tick) EmitFirst();
  EmitComplete();
}

}  // namespace sonde::tree
