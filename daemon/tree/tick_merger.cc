#include "daemon/tree/tick_merger.h"

#include <algorithm>
#include <utility>

namespace sonde::tree {

TickMerger::Id TickMerger::AddContributor(Nanos joined) {
  contributors_.push_back({.id = next_id_, .joined = joined});
  return next_id_++;
}

TickMerger::Contributor* TickMerger::Find(Id id) {
  const auto at = std::lower_bound(contributors_.begin(), contributors_.end(), id,
                                   [](const Contributor& c, Id i) { return c.id < i; });
  return at == contributors_.end() || at->id != id ? nullptr : &*at;
}

void TickMerger::SetSchema(Id id, Schema::Ptr schema) {
  Contributor* contributor = Find(id);
  if (contributor == nullptr) return;
  contributor->columns = ColumnsFor(std::move(schema));
  present_.clear();
}

TickMerger::ColumnsPtr TickMerger::ColumnsFor(Schema::Ptr schema) {
  if (columns_.size() > columns_limit_) {
    std::erase_if(columns_, [](const auto& known) { return known.second.expired(); });
    columns_limit_ = 2 * columns_.size() + 16;
  }
  std::weak_ptr<const Columns>& known = columns_[schema.get()];
  if (ColumnsPtr columns = known.lock()) return columns;
  auto columns = std::make_shared<Columns>();
  columns->columns = union_.ColumnsOf(*schema);
  columns->spreads = union_.SpreadsOf(*schema, columns->columns);
  columns->schema = std::move(schema);  // no other one has its address as long as this is known
  known = columns;
  return columns;
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

bool TickMerger::Awaits(const Contributor& contributor, Nanos tick) {
  return contributor.joined < tick && contributor.last_tick < tick &&
         (contributor.leaves == 0 || contributor.leaves >= tick);
}

// Asked whenever a part has come: goes on where it stopped the last time.
bool TickMerger::Complete(const Row& row) {
  if (std::exchange(complete_at_, row.tick) != row.tick) complete_ = 0;
  while (complete_ < contributors_.size() && !Awaits(contributors_[complete_], row.tick)) {
    ++complete_;
  }
  return complete_ == contributors_.size();
}

void TickMerger::MergeInto(Row& row, const Contributor& from, const Frame& frame, uint32_t sender) {
  row.values.resize(union_.size());
  row.spreads.resize(union_.spreads());
  row.sources.push_back({sender, frame.number});
  if (from.columns == nullptr) return;
  const auto& [schema, columns, spreads] = *from.columns;
  const size_t n = std::min(frame.values.size(), columns.size());
  for (size_t i = 0; i < n; ++i) {
    if (columns[i] != SeriesUnion::kLeftOut) row.values[columns[i]].Merge(frame.values[i]);
  }
  const size_t m = std::min(frame.spreads.size(), spreads.size());
  for (size_t i = 0; i < m; ++i) {
    if (spreads[i] != SeriesUnion::kNoSpread) row.spreads[spreads[i]].Merge(frame.spreads[i]);
  }
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
  const auto place = contributor - contributors_.data();
  if (static_cast<size_t>(place) < complete_) --complete_;
  contributors_.erase(contributors_.begin() + place);
  present_.clear();
  EmitComplete();
}

void TickMerger::KeepColumns(const Contributor& gone) {
  if (gone.columns == nullptr) return;
  if (oldest() != 0 && gone.last_tick >= oldest()) gone_.emplace_back(gone.last_tick, gone.columns);
}

bool TickMerger::Leave(Id id, Nanos until) {
  Contributor* contributor = Find(id);
  if (contributor == nullptr) return false;
  contributor->leaves = until;
  const auto place = static_cast<size_t>(contributor - contributors_.data());
  if (place < complete_ && Awaits(*contributor, complete_at_)) complete_ = place;
  return true;
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
  if (left > 0) complete_ = 0;
  if (left + over > 0) present_.clear();
  emit_(row, false);
  if (spare_.size() < kMaxSpare) spare_.push_back(std::move(waiting));
}

const std::vector<bool>& TickMerger::Present() {
  if (present_.size() == union_.size()) return present_;
  present_.assign(union_.size(), false);
  const Columns* last = nullptr;  // most are the same
  const auto add = [&](const ColumnsPtr& columns) {
    if (columns == nullptr || std::exchange(last, columns.get()) == columns.get()) return;
    for (const uint32_t column : columns->columns) {
      if (column != SeriesUnion::kLeftOut) present_[column] = true;
    }
  };
  for (const auto& [newest, columns] : gone_) add(columns);
  for (const Contributor& contributor : contributors_) add(contributor.columns);
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
