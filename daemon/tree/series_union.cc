#include "daemon/tree/series_union.h"

namespace sonde::tree {

std::vector<uint32_t> SeriesUnion::ColumnsOf(const Schema& schema) {
  std::vector<uint32_t> columns;
  columns.reserve(schema.size());
  for (const Series& series : schema.series()) {
    const auto [at, added] = index_.try_emplace(SeriesName(series.metric.name, series.tags),
                                                static_cast<uint32_t>(series_.size()));
    if (added) series_.push_back(series);
    columns.push_back(at->second);
  }
  return columns;
}

const Schema::Ptr& SeriesUnion::schema() {
  if (schema_ == nullptr || schema_->size() != series_.size()) schema_ = Schema::Make(series_);
  return schema_;
}

}  // namespace sonde::tree
