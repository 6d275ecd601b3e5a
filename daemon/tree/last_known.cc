#include "daemon/tree/last_known.h"

#include <algorithm>

#include "core/metric.h"

namespace sonde::tree {
namespace {

bool IsCounted(const Series& series, const Reduced& value) {
  return value.count > 0 && IsCounting(series.metric.type);
}

}  // namespace

void LastKnown::Add(const Schema& schema, std::span<const Reduced> values) {
  const size_t n = std::min(schema.size(), values.size());
  std::vector<Series> counted;
  std::vector<Reduced> newer;
  for (size_t i = 0; i < n; ++i) {
    if (!IsCounted(schema[i], values[i])) continue;
    counted.push_back(schema[i]);
    newer.push_back(values[i]);
  }
  if (counted.empty()) return;
  const std::vector<uint32_t> columns = series_.ColumnsOf(*Schema::Make(std::move(counted)));
  values_.resize(series_.size());
  for (size_t i = 0; i < columns.size(); ++i) {
    if (columns[i] != SeriesUnion::kLeftOut) values_[columns[i]] = newer[i];
  }
}

KnownValues LastKnown::With(const Schema::Ptr& schema, std::vector<Reduced> values) const {
  if (empty()) return {schema, std::move(values)};
  SeriesUnion all;
  const std::vector<uint32_t> ours = all.ColumnsOf(*schema);
  std::vector<Reduced> known(all.size());
  for (size_t i = 0; i < ours.size() && i < values.size(); ++i) {
    if (ours[i] != SeriesUnion::kLeftOut) known[ours[i]] = values[i];
  }
  const std::vector<uint32_t> before = all.ColumnsOf(*Schema::Make(series_.series()));
  known.resize(all.size());
  for (size_t i = 0; i < before.size(); ++i) {
    if (before[i] != SeriesUnion::kLeftOut && known[before[i]].count == 0)
      known[before[i]] = values_[i];
  }
  return {all.size() == schema->size() ? schema : all.schema(), std::move(known)};
}

}  // namespace sonde::tree
