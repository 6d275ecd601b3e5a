#include "daemon/tree/own_reducer.h"

#include <charconv>
#include <string>
#include <unordered_map>

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
  groups_.assign(groups.begin(), groups.end());
  columns_.assign(groups.size(), {});
  std::vector<Series> reduced;
  std::unordered_map<std::string, uint32_t> index;
  for (size_t g = 0; g < groups.size(); ++g) {
    if (groups[g] == nullptr) continue;
    for (const Series& series : groups[g]->series()) {
      Series merged = series;
      merged.tags.Erase("task");
      const auto [at, added] = index.try_emplace(SeriesName(merged.metric.name, merged.tags),
                                                 static_cast<uint32_t>(reduced.size()));
      if (added) reduced.push_back(std::move(merged));
      columns_[g].push_back({at->second, {node_, RankOf(series.tags)}});
    }
  }
  values_.assign(reduced.size(), Reduced());
  Schema::Ptr schema = Schema::Make(std::move(reduced));
  const bool changed = schema_ == nullptr || schema->id() != schema_->id();
  schema_ = std::move(schema);
  return changed;
}

void OwnReducer::SetNode(uint32_t node) {
  node_ = node;
  for (auto& group : columns_) {
    for (Column& column : group) column.owner.node = node;
  }
}

void OwnReducer::Begin() {
  for (Reduced& value : values_) value = Reduced();
}

void OwnReducer::Add(size_t group, std::span<const double> row) {
  const std::vector<Column>& columns = columns_[group];
  for (size_t i = 0; i < columns.size(); ++i)
    values_[columns[i].reduced].Add(row[i], columns[i].owner);
}

}  // namespace sonde::tree
