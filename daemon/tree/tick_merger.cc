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
  contributor->columns = ColumnsOf(schema);
  contributor->last.assign(schema->size(), Reduced());
  contributor->schema = std::move(schema);
  present_.clear();
}

std::vector<uint32_t> TickMerger::ColumnsOf(const Schema::Ptr& schema) {
  for (const Contributor& other : contributors_) {
    if (other.schema == schema) return other.columns;
  }
  std::vector<uint32_t> columns;
  columns.reserve(schema->size());
  for (const Series& series : schema->series()) {
    const auto [at, added] = index_.try_emplace(SeriesName(series.metric.name, series.tags),
                                                static_cast<uint32_t>(series_.size()));
    if (added) series_.push_back(series);
    columns.push_back(at->second);
  }
  return columns;
}

Frame& TickMerger::RowOf(Nanos tick) {
  const auto at = std::lower_bound(rows_.begin(), rows_.end(), tick,
                                   [](const Frame& r, Nanos t) { return r.tick < t; });
  if (at != rows_.end() && at->tick == tick) return *at;
  Frame row;
  if (!spare_.empty()) {
    row = std::move(spare_.back());
    spare_.pop_back();
  }
  row.tick = tick;
  row.node = node_;
  row.nodes = 0;
  row.values.assign(series_.size(), Reduced());
  return *rows_.insert(at, std::move(row));
}

bool TickMerger::Complete(const Frame& row) const {
  return std::all_of(contributors_.begin(), contributors_.end(), [&](const Contributor& c) {
    return c.joined >= row.tick || c.last_tick >= row.tick ||
           (c.leaves != 0 && c.leaves < row.tick);
  });
}

void TickMerger::MergeInto(std::vector<Reduced>& row, const Contributor& from,
                           const std::vector<Reduced>& values) {
  row.resize(series_.size());
  const size_t n = std::min(values.size(), from.columns.size());
  for (size_t i = 0; i < n; ++i) row[from.columns[i]].Merge(values[i]);
}

void TickMerger::Add(Id id, const Frame& frame) {
  Contributor* contributor = Find(id);
  if (contributor == nullptr) return;
  if (frame.final) {
    Depart(*contributor, frame.values, frame.tick);
    Remove(id, false);
    return;
  }
  contributor->last_tick = std::max(contributor->last_tick, frame.tick);
  contributor->last.resize(frame.values.size());
  for (size_t i = 0; i < frame.values.size(); ++i) {
    if (frame.values[i].count > 0) contributor->last[i] = frame.values[i];
  }
  contributor->last_nodes = frame.nodes;
  const bool late = frame.tick <= emitted_;
  if (late) {
    late_.tick = frame.tick;
    late_.node = node_;
    late_.nodes = frame.nodes;
    late_.values.assign(series_.size(), Reduced());
    MergeInto(late_.values, *contributor, frame.values);
    emit_(late_, true);
    return;
  }
  Frame& row = RowOf(frame.tick);
  row.nodes += frame.nodes;
  MergeInto(row.values, *contributor, frame.values);
  EmitComplete();
}

void TickMerger::Depart(const Contributor& from, const std::vector<Reduced>& values, Nanos when) {
  Departed departed{when, {}};
  MergeInto(departed.values, from, values);
  pending_.push_back(std::move(departed));
}

bool TickMerger::Remove(Id id, bool keep_counters) {
  Contributor* contributor = Find(id);
  if (contributor == nullptr) return false;
  const bool keep = keep_counters && contributor->last_tick != 0 && contributor->last_nodes <= 1;
  if (keep) {
    Depart(*contributor, contributor->last, contributor->last_tick + 1);
  }
  contributors_.erase(contributors_.begin() + (contributor - contributors_.data()));
  present_.clear();
  EmitComplete();
  return keep;
}

bool TickMerger::Leave(Id id, Nanos until) {
  Contributor* contributor = Find(id);
  if (contributor != nullptr) contributor->leaves = until;
  return contributor != nullptr;
}

void TickMerger::FoldDeparted(Nanos tick) {
  std::erase_if(pending_, [&](const Departed& d) {
    if (d.when > tick) return false;
    departed_.resize(series_.size());
    for (size_t i = 0; i < d.values.size(); ++i) departed_[i].Merge(d.values[i]);
    return true;
  });
}

void TickMerger::EmitFirst() {
  Frame row = std::move(rows_.front());
  rows_.erase(rows_.begin());
  row.values.resize(series_.size());
  FoldDeparted(row.tick);
  if (!departed_.empty()) UpdatePresent();
  for (size_t i = 0; i < departed_.size(); ++i) {
    if (series_[i].metric.type != MetricType::kCounter) continue;
    if (row.values[i].count > 0 || !present_[i]) row.values[i].Merge(departed_[i]);
  }
  emitted_ = row.tick;
  const size_t left = std::erase_if(contributors_, [this](const Contributor& c) {
    return c.leaves != 0 && c.leaves <= emitted_;
  });
  if (left > 0) present_.clear();
  emit_(row, false);
  spare_.push_back(std::move(row));
}

void TickMerger::UpdatePresent() {
  if (present_.size() == series_.size()) return;
  present_.assign(series_.size(), false);
  for (const Contributor& contributor : contributors_) {
    for (const uint32_t column : contributor.columns) present_[column] = true;
  }
}

void TickMerger::EmitComplete() {
  while (!rows_.empty() && Complete(rows_.front())) EmitFirst();
}

void TickMerger::EmitUpTo(Nanos tick) {
  while (!rows_.empty() && rows_.front().tick <= tick) EmitFirst();
  EmitComplete();
}

Frame TickMerger::Final(Nanos now) {
  FoldDeparted(INT64_MAX);
  Frame frame;
  frame.tick = now;
  frame.node = node_;
  frame.final = true;
  frame.values = departed_;
  frame.values.resize(series_.size());
  return frame;
}

}  // namespace sonde::tree
