#include "daemon/node/record/past_rows.h"

#include <algorithm>
#include <cstdint>

namespace sonde::node {
namespace {

// Its own limit is never reached: PastRows has one.
GroupStore::Options StoreOptions() {
  GroupStore::Options options;
  options.memory_limit = SIZE_MAX;
  options.late_rows = 1;  // the newest row stays open for more values of its tick
  return options;
}

// The nearest one: that of a whole second is the same where the clock of the program and that of
// the step differ by a little.
Nanos TickOf(Nanos time, Nanos period) {
  const Nanos later = time + period / 2;
  const Nanos rest = later % period;
  return later - rest - (rest < 0 ? period : 0);
}

}  // namespace

PastRows::PastRows(size_t memory_limit, Nanos period)
    : memory_limit_(memory_limit), period_(period), store_(StoreOptions()) {
  OnSeal(nullptr);
}

void PastRows::OnSeal(const std::function<void(const SealedBlock&)>& f) {
  store_.OnSeal([this, f](const SealedBlock& block) {
    sealed_ += block.bytes->size();
    if (last_schema_ != block.schema) schemas_ += block.schema->memory();
    last_schema_ = block.schema;
    if (f) f(block);
  });
}

void PastRows::FindColumns(std::span<const collect::PastValue> values,
                           const std::vector<Series>& series) {
  for (const collect::PastValue& value : values) {
    const auto [column, added] = columns_.try_emplace(value.column, series_.size());
    if (!added) continue;
    series_.push_back(series[value.column]);
    grown_ = true;
  }
}

bool PastRows::Add(std::span<const collect::PastValue> values, const std::vector<Series>& series,
                   Nanos newest, const std::function<Schema::Ptr(const Schema::Ptr&)>& stored) {
  if (IsFull()) {
    dropped_ += values.size();
    return false;
  }
  FindColumns(values, series);
  if (grown_) store_.SetSchema(stored(Schema::Make(series_)));
  grown_ = false;
  std::vector<collect::PastValue> sorted(values.begin(), values.end());
  for (collect::PastValue& value : sorted) {
    value.time = std::min(TickOf(value.time, period_), newest);
  }
  std::stable_sort(
      sorted.begin(), sorted.end(),
      [](const collect::PastValue& a, const collect::PastValue& b) { return a.time < b.time; });
  for (size_t begin = 0, end = 0; begin < sorted.size(); begin = end) {
    if (IsFull()) {
      dropped_ += sorted.size() - begin;
      return false;
    }
    while (end < sorted.size() && sorted[end].time == sorted[begin].time) ++end;
    store_.Place(sorted[begin].time, [&](std::span<double> row) {
      for (size_t i = begin; i < end; ++i) row[columns_.at(sorted[i].column)] = sorted[i].value;
    });
  }
  return true;
}

}  // namespace sonde::node
