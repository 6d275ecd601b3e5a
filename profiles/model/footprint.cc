#include "profiles/model/footprint.h"

#include <algorithm>
#include <cmath>

namespace sonde {
namespace {

void KeepMin(Reduced& kept, const Reduced& value) {
  if (value.min < kept.min || (value.min == kept.min && value.min_owner < kept.min_owner)) {
    kept.min = value.min;
    kept.min_owner = value.min_owner;
  }
}

void KeepMax(Reduced& kept, const Reduced& value) {
  if (value.max > kept.max || (value.max == kept.max && value.max_owner < kept.max_owner)) {
    kept.max = value.max;
    kept.max_owner = value.max_owner;
  }
}

bool Counts(const Metric& metric) { return IsCounting(metric.type); }

}  // namespace

void FootprintBuilder::SetSeries(const std::vector<Series>& series) {
  columns_.clear();
  columns_.reserve(series.size());
  spreads_.clear();
  auto index = std::make_shared<Index>(*index_);
  for (const Series& s : series) {
    const auto [it, is_new] = index->try_emplace(SeriesName(s.metric.name, s.tags), slots_.size());
    if (is_new) slots_.emplace_back().series = std::make_shared<const Series>(s);
    columns_.push_back(it->second);
    if (s.metric.spread) spreads_.push_back(it->second);
  }
  index_ = std::move(index);
}

void FootprintBuilder::AddGauge(Slot& slot, const Reduced& value) {
  const double number = value.Value(slot.series->metric.reduction);
  slot.last = number;
  slot.sum += number;
  KeepMin(slot.extremes, value);
  KeepMax(slot.extremes, value);
}

void FootprintBuilder::AddCounter(Slot& slot, const Reduced& value) const {
  const double count = slot.total.count();
  slot.last = slot.total.Add(value, changes_);
  if (slot.ticks > 0 && value.count != count) {
    // The owner of the smallest value has left if a smaller row lacks it; if all values are back,
    // no owner has left.
    if (value.count < count && slot.row_min.min_owner != value.min_owner) {
      KeepMin(slot.gone_min, slot.row_min);
    }
    if (slot.total.missing() == 0) slot.gone_min = Reduced();
  }
  slot.row_min.min = value.min;
  slot.row_min.min_owner = value.min_owner;
  KeepMax(slot.extremes, value);
}

void FootprintBuilder::AddSpread(Slot& slot, Nanos time, const Spread& spread) {
  ++slot.spreads;
  for (size_t i = 0; i < kSpreadColumns; ++i) slot.spread_sum[i] += spread[i];
  if (time < slot.spread_time) return;
  slot.last_spread = spread;
  slot.spread_time = time;
}

// If any percentile is there, the first one is.
void FootprintBuilder::AddSpreads(Nanos time, std::span<const Spread> spreads) {
  const size_t n = std::min(spreads.size(), spreads_.size());
  for (size_t i = 0; i < n; ++i) {
    if (!std::isnan(spreads[i][0])) AddSpread(slots_[spreads_[i]], time, spreads[i]);
  }
}

void FootprintBuilder::AmendSpreads(Nanos time, std::span<const Spread> before,
                                    std::span<const Spread> after) {
  const size_t n = std::min({before.size(), after.size(), spreads_.size()});
  for (size_t i = 0; i < n; ++i) {
    if (std::isnan(after[i][0])) continue;
    Slot& slot = slots_[spreads_[i]];
    if (!std::isnan(before[i][0])) {
      --slot.spreads;
      for (size_t k = 0; k < kSpreadColumns; ++k) slot.spread_sum[k] -= before[i][k];
    }
    AddSpread(slot, time, after[i]);
  }
}

void FootprintBuilder::AddRow(Nanos time, std::span<const Reduced> row,
                              std::span<const Spread> spreads, bool others) {
  if (row.size() != columns_.size() || (rows_ > 0 && time <= last_row_)) return;
  ++rows_;
  last_row_ = time;
  changes_ += others ? 1 : 0;
  for (size_t i = 0; i < row.size(); ++i) {
    const Reduced& value = row[i];
    if (!(value.count > 0) || std::isnan(value.sum)) continue;
    Slot& slot = slots_[columns_[i]];
    if (Counts(slot.series->metric)) {
      AddCounter(slot, value);
    } else {
      AddGauge(slot, value);
    }
    ++slot.ticks;
    slot.last_time = time;
  }
  AddSpreads(time, spreads);
}

void FootprintBuilder::AmendRow(Nanos time, const Row& row_before, const Row& row_after) {
  const std::span<const Reduced> before = row_before.values;
  const std::span<const Reduced> after = row_after.values;
  if (before.size() != columns_.size() || after.size() != columns_.size()) return;
  for (size_t i = 0; i < after.size(); ++i) {
    if (!(after[i].count > before[i].count) || std::isnan(after[i].sum)) continue;
    Slot& slot = slots_[columns_[i]];
    const bool fresh = !(before[i].count > 0);
    const bool newest = time >= slot.last_time;
    if (Counts(slot.series->metric)) {
      // Later rows include these counts, if this is not the newest row.
      if (newest) AddCounter(slot, after[i]);
    } else {
      const Reduction reduction = slot.series->metric.reduction;
      const double number = after[i].Value(reduction);
      slot.sum += number - (fresh ? 0 : before[i].Value(reduction));
      if (newest) slot.last = number;
      KeepMin(slot.extremes, after[i]);
      KeepMax(slot.extremes, after[i]);
    }
    if (fresh) ++slot.ticks;
    if (newest) slot.last_time = time;
  }
  AmendSpreads(time, row_before.spreads, row_after.spreads);
}

std::vector<FootprintEntry> FootprintBuilder::Entries() const {
  std::vector<FootprintEntry> entries;
  entries.reserve(slots_.size());
  for (const Slot& slot : slots_) {
    if (slot.ticks == 0) continue;
    FootprintEntry entry;
    entry.series = *slot.series;
    entry.ticks = slot.ticks;
    entry.last = slot.last;
    Reduced extremes = slot.extremes;
    if (Counts(slot.series->metric)) {
      const Nanos lived = slot.last_time - start_;
      entry.mean = lived > 0 ? slot.last * static_cast<double>(kSecond) / static_cast<double>(lived)
                             : std::nan("");
      KeepMin(extremes, slot.row_min);
      KeepMin(extremes, slot.gone_min);
    } else {
      entry.mean = slot.sum / static_cast<double>(slot.ticks);
    }
    entry.min = extremes.min;
    entry.max = extremes.max;
    entry.min_owner = extremes.min_owner;
    entry.max_owner = extremes.max_owner;
    if (slot.spreads > 0) {
      entry.spread = {slot.last_spread, slot.spread_sum};
      for (double& mean : entry.spread->mean) mean /= static_cast<double>(slot.spreads);
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace sonde
