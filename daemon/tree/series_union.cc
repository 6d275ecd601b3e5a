#include "daemon/tree/series_union.h"

#include "daemon/tree/frame.h"

namespace sonde::tree {

std::vector<uint32_t> SeriesUnion::ColumnsOf(const Schema& schema) {
  std::vector<uint32_t> columns;
  columns.reserve(schema.size());
  for (const Series& series : schema.series()) {
    const auto [at, added] = index_.try_emplace(SeriesName(series.metric.name, series.tags),
                                                static_cast<uint32_t>(series_.size()));
    if (added) {
      series_.push_back(series);
      const bool spread = series.metric.spread && spreads_ < SpreadColumns::kMax;
      spread_.push_back(spread ? spreads_++ : kNoSpread);
    }
    columns.push_back(at->second);
  }
  return columns;
}

std::vector<uint32_t> SeriesUnion::SpreadsOf(const Schema& schema,
                                             const std::vector<uint32_t>& columns) const {
  std::vector<uint32_t> spreads;
  for (size_t i = 0; i < schema.size(); ++i) {
    if (schema[i].metric.spread) spreads.push_back(spread_[columns[i]]);
  }
  return spreads;
}

const Schema::Ptr& SeriesUnion::schema() {
  if (schema_ == nullptr || schema_->size() != series_.size()) schema_ = Schema::Make(series_);
  return schema_;
}

}  // namespace sonde::tree
