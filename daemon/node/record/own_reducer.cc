#include "daemon/node/record/own_reducer.h"

#include <charconv>
#include <cmath>
#include <string>
#include <unordered_map>
#include <utility>

namespace sonde::tree {
namespace {

uint32_t RankOf(const Tags& tags) {
  const std::string* task = tags.Find("task");
  uint32_t rank = Owner::kNobody;
  if (task != nullptr) std::from_chars(task->data(), task->data() + task->size(), rank);
  return rank;
}

}  // namespace

bool OwnReducer::SetSchemas(std::span<const Schema::Ptr> groups) {
  if (std::equal(groups.begin(), groups.end(), groups_.begin(), groups_.end())) return false;
  columns_.assign(groups.size(), {});
  reduced_ = {};
  for (size_t g = 0; g < groups.size(); ++g) {
    if (groups[g] == nullptr) continue;
    for (const Series& series : groups[g]->series()) {
      Series merged = series;
      merged.tags.Erase("task");
      columns_[g].push_back({reduced_.ColumnOf(merged), {node_, RankOf(series.tags)}});
    }
  }
  values_.assign(reduced_.size(), Reduced());
  Schema::Ptr schema = reduced_.schema();
  SetSpreads(groups, *schema);
  groups_.assign(groups.begin(), groups.end());
  const bool changed = schema_ == nullptr || schema->id() != schema_->id();
  schema_ = std::move(schema);
  return changed;
}

// Counters go on where they were.
void OwnReducer::SetSpreads(std::span<const Schema::Ptr> groups, const Schema& reduced) {
  std::unordered_map<std::string, SpreadColumn> before;
  for (size_t g = 0; g < spread_columns_.size(); ++g) {
    for (const SpreadColumn& column : spread_columns_[g]) {
      const Series& series = (*groups_[g])[column.column];
      before.emplace(SeriesName(series.metric.name, series.tags), column);
    }
  }
  std::vector<uint32_t> places;
  uint32_t spreads = 0;
  for (const Series& series : reduced.series()) {
    const bool spread = series.metric.spread && spreads < SpreadColumns::kMax;
    places.push_back(spread ? spreads++ : UINT32_MAX);
  }
  spread_columns_.assign(groups.size(), {});
  for (size_t g = 0; g < groups.size(); ++g) {
    for (uint32_t i = 0; i < columns_[g].size(); ++i) {
      const Series& series = (*groups[g])[i];
      const uint32_t at = columns_[g][i].reduced;
      const uint32_t place = at == SeriesUnion::kLeftOut ? UINT32_MAX : places[at];
      if (!series.metric.spread || place == UINT32_MAX) continue;
      SpreadColumn column{i, place, series.metric.type != MetricType::kGauge};
      const auto known = before.find(SeriesName(series.metric.name, series.tags));
      if (known != before.end() && known->second.rate == column.rate) {
        column = known->second;
        column.column = i;
        column.spread = place;
      }
      spread_columns_[g].push_back(column);
    }
  }
  spreads_.assign(spreads, QuantileSketch());
}

void OwnReducer::SetNode(uint32_t node) {
  node_ = node;
  for (auto& group : columns_) {
    for (Column& column : group) column.owner.node = node;
  }
}

void OwnReducer::Begin(Nanos time) {
  time_ = time;
  for (Reduced& value : values_) value = Reduced();
  for (QuantileSketch& spread : spreads_) spread.Clear();
}

void OwnReducer::AddRate(SpreadColumn& column, double value) {
  if (std::isnan(value)) return;
  if (time_ > column.time) {
    column.time_before = column.time;
    column.value_before = column.value;
    column.time = time_;
    column.value = value;
  }
  if (column.time_before == 0) return;
  const double seconds = static_cast<double>(column.time - column.time_before) / kSecond;
  spreads_[column.spread].Add((column.value - column.value_before) / seconds);
}

void OwnReducer::Add(size_t group, std::span<const double> row) {
  const std::vector<Column>& columns = columns_[group];
  for (size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].reduced == SeriesUnion::kLeftOut) continue;
    values_[columns[i].reduced].Add(row[i], columns[i].owner);
  }
  for (SpreadColumn& column : spread_columns_[group]) {
    const double value = row[column.column];
    if (column.rate) {
      AddRate(column, value);
    } else {
      spreads_[column.spread].Add(value);
    }
  }
}

}  // namespace sonde::tree
