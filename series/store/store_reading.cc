#include "series/store/store_reading.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>
#include <utility>

#include "core/log.h"

namespace sonde {
namespace {

// The part of non-decreasing times that lies within [start, end]: first row and number of rows.
std::pair<size_t, size_t> RowsWithin(std::span<const Nanos> times, Nanos start, Nanos end) {
  const auto first = std::lower_bound(times.begin(), times.end(), start);
  const auto last = std::upper_bound(first, times.end(), end);
  return {static_cast<size_t>(first - times.begin()), static_cast<size_t>(last - first)};
}

// Where each of the columns is among those that are wanted.
std::vector<size_t> PlacesAmong(const std::vector<bool>& wanted) {
  std::vector<size_t> places(wanted.size());
  for (size_t c = 0, taken = 0; c < places.size(); ++c) {
    if (wanted[c]) places[c] = taken++;
  }
  return places;
}

void LogFailure(const GroupStore::SharedBlock& one, const Status& why) {
  log::Error("read block {}: {}; its rows are missing in the answer", one.block.sequence,
             why.message());
}

size_t BytesOf(const ColumnCache::Columns& columns) {
  return columns.values.size() * columns.times->size() * sizeof(double);
}

}  // namespace

// --- Columns that are kept ---

ColumnCache::Columns ColumnCache::Known(uint64_t sequence, const std::vector<bool>& wanted) const {
  const std::lock_guard lock(mutex_);
  Columns known;
  const auto at = blocks_.find(sequence);
  if (at == blocks_.end()) return known;
  known.times = at->second.times;
  for (const auto& [column, values] : at->second.values) {
    if (wanted[column]) known.values.emplace(column, values);
  }
  return known;
}

void ColumnCache::Keep(uint64_t sequence, const Columns& more) {
  std::map<uint64_t, Columns> forgotten;  // freed without the lock
  const std::lock_guard lock(mutex_);
  const size_t bytes = BytesOf(more);
  if (bytes > limit_) return;
  if (bytes_ + bytes > limit_) {
    forgotten.swap(blocks_);
    bytes_ = 0;
  }
  Columns& known = blocks_[sequence];
  known.times = more.times;
  for (const auto& [column, values] : more.values) {
    if (known.values.emplace(column, values).second) bytes_ += values->size() * sizeof(double);
  }
}

void ColumnCache::ForgetBefore(uint64_t sequence) {
  const std::lock_guard lock(mutex_);
  while (!blocks_.empty() && blocks_.begin()->first < sequence) {
    bytes_ -= BytesOf(blocks_.begin()->second);
    blocks_.erase(blocks_.begin());
  }
}

Result<ColumnCache::Columns> ColumnCache::Read(const SealedBlock& block,
                                               const std::vector<bool>& wanted) {
  Columns columns = Known(block.sequence, wanted);
  std::vector<bool> missing = wanted;
  for (const auto& [column, values] : columns.values) missing[column] = false;
  if (std::find(missing.begin(), missing.end(), true) == missing.end()) return columns;
  const Result<Block> decoded = DecodeColumns(*block.bytes, missing);
  if (!decoded.ok()) return decoded.status();
  Columns more;
  more.times = std::make_shared<const std::vector<Nanos>>(decoded->times);
  for (size_t c = 0, taken = 0; c < missing.size(); ++c) {
    if (!missing[c]) continue;
    const auto column = decoded->Column(taken++);
    more.values[c] = std::make_shared<const std::vector<double>>(column.begin(), column.end());
  }
  Keep(block.sequence, more);
  columns.times = more.times;
  columns.values.merge(more.values);
  return columns;
}

// --- A reading ---

void GroupReading::Share(const GroupStore& store) {
  shared_ = store.Share(earlier_ == Earlier::kNone ? start_ : 0, end_);
}

void GroupReading::Choose() {
  for (const GroupStore::SharedBlock& one : shared_.blocks) TargetsOf(*one.block.schema);
  TargetsOf(*shared_.open);
}

bool GroupReading::TakeOpen(const GroupStore& store) {
  return store.CopyOpen(shared_, TargetsOf(*shared_.open).wanted, open_);
}

// Stitches the columns of blocks with different schemas to one piece per series.
std::vector<SeriesData> GroupReading::Finish() {
  if (shared_.columns != nullptr) shared_.columns->ForgetBefore(shared_.oldest);
  for (const GroupStore::SharedBlock& one : shared_.blocks) {
    if (one.block.info.last >= start_) ReadBlock(one);
  }
  size_t taken = 0;
  AddColumns(TargetsOf(*shared_.open), open_.times,
             [&](size_t) { return open_.columns.data() + open_.times.size() * taken++; });
  if (earlier_ == Earlier::kCounted) ReadEarlier();
  std::erase_if(data_, [](const SeriesData& d) { return d.points.empty(); });
  return std::move(data_);
}

const GroupReading::Targets& GroupReading::TargetsOf(const Schema& schema) {
  const auto [at, added] = by_schema_.try_emplace(schema.id());
  Targets& targets = at->second;
  if (!added) return targets;
  targets.of.assign(schema.size(), kUnwanted);
  targets.wanted.assign(schema.size(), false);
  std::unordered_set<size_t> used;
  for (size_t i = 0; i < schema.size(); ++i) {
    if (!wanted_(schema[i])) continue;
    const auto [known, first] =
        by_name_.try_emplace(SeriesName(schema[i].metric.name, schema[i].tags), data_.size());
    if (first) data_.push_back({schema[i], {}});
    // Of a series that one schema lists twice, the first column counts.
    if (!used.insert(known->second).second) continue;
    targets.of[i] = known->second;
    targets.wanted[i] = targets.any = true;
  }
  return targets;
}

void GroupReading::Add(size_t index, std::span<const Nanos> times, const double* values) {
  std::vector<Point>& points = data_[index].points;
  for (size_t row = 0; row < times.size(); ++row) {
    if (!std::isnan(values[row])) points.push_back({times[row], values[row]});
  }
}

template <typename Column>
void GroupReading::AddColumns(const Targets& targets, std::span<const Nanos> times,
                              const Column& column) {
  const auto [first, count] = RowsWithin(times, start_, end_);
  for (size_t c = 0; c < targets.of.size(); ++c) {
    if (targets.wanted[c]) Add(targets.of[c], times.subspan(first, count), column(c) + first);
  }
}

void GroupReading::ReadPlain(const Targets& targets, const PlainBlock& block) {
  values_.resize(block.times().size());
  AddColumns(targets, block.times(), [&](size_t column) {
    if (!block.Read(column, values_).ok()) {
      std::fill(values_.begin(), values_.end(), std::nan(""));
    }
    return values_.data();
  });
}

// --- Points before the range ---

// Backwards, for as long as some counter has none.
void GroupReading::ReadEarlier() {
  before_.assign(data_.size(), {});
  const Targets& open = TargetsOf(*shared_.open);
  const std::vector<size_t> places = PlacesAmong(open.wanted);
  AddBefore(open, MissingBefore(open), open_.times,
            [&](size_t c) { return open_.columns.data() + open_.times.size() * places[c]; });
  std::for_each(shared_.blocks.rbegin(), shared_.blocks.rend(), [&](const auto& one) {
    if (one.block.info.first < start_) ReadBlockEarlier(one);
  });
  for (size_t i = 0; i < data_.size(); ++i) {
    if (before_[i]) data_[i].points.insert(data_[i].points.begin(), *before_[i]);
  }
}

// Columns of counters of which no point before the range was found yet.
std::vector<bool> GroupReading::MissingBefore(const Targets& targets) const {
  std::vector<bool> missing(targets.of.size());
  for (size_t c = 0; c < missing.size(); ++c) {
    if (!targets.wanted[c]) continue;
    const size_t index = targets.of[c];
    missing[c] = !before_[index] && IsCounting(data_[index].series.metric.type);
  }
  return missing;
}

template <typename Column>
void GroupReading::AddBefore(const Targets& targets, const std::vector<bool>& missing,
                             std::span<const Nanos> times, const Column& column) {
  const auto end = std::lower_bound(times.begin(), times.end(), start_);
  const auto rows = static_cast<size_t>(end - times.begin());
  for (size_t c = 0; c < missing.size(); ++c) {
    if (!missing[c]) continue;
    const double* values = column(c);
    for (size_t row = rows; row > 0 && !before_[targets.of[c]]; --row) {
      if (std::isnan(values[row - 1])) continue;
      before_[targets.of[c]] = Point{times[row - 1], values[row - 1]};
    }
  }
}

void GroupReading::ReadBlockEarlier(const GroupStore::SharedBlock& one) {
  const Targets& targets = TargetsOf(*one.block.schema);
  const std::vector<bool> missing = MissingBefore(targets);
  if (std::find(missing.begin(), missing.end(), true) == missing.end()) return;
  const Result<Block> decoded = DecodeColumns(*one.block.bytes, missing);
  if (!decoded.ok()) return LogFailure(one, decoded.status());
  const std::vector<size_t> places = PlacesAmong(missing);
  AddBefore(targets, missing, decoded->times,
            [&](size_t c) { return decoded->Column(places[c]).data(); });
}

void GroupReading::ReadBlock(const GroupStore::SharedBlock& one) {
  const Targets& targets = TargetsOf(*one.block.schema);
  if (!targets.any) return;
  if (one.plain != nullptr) return ReadPlain(targets, *one.plain);
  if (shared_.columns != nullptr) {
    const Result<ColumnCache::Columns> kept = shared_.columns->Read(one.block, targets.wanted);
    if (!kept.ok()) return LogFailure(one, kept.status());
    return AddColumns(targets, *kept->times,
                      [&](size_t column) { return kept->values.at(column)->data(); });
  }
  const Result<Block> decoded = DecodeColumns(*one.block.bytes, targets.wanted);
  if (!decoded.ok()) return LogFailure(one, decoded.status());
  size_t taken = 0;
  AddColumns(targets, decoded->times, [&](size_t) { return decoded->Column(taken++).data(); });
}

}  // namespace sonde
