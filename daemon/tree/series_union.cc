#include "daemon/tree/series_union.h"

#include <fmt/core.h>

#include <utility>

#include "core/text/hash.h"
#include "daemon/tree/frame.h"

namespace sonde::tree {

uint32_t SeriesUnion::ColumnOf(const Series& series) {
  std::string name = SeriesName(series.metric.name, series.tags);
  const auto at = index_.find(name);
  return at != index_.end() ? at->second : Add(std::move(name), series);
}

std::vector<uint32_t> SeriesUnion::ColumnsOf(const Schema& schema) {
  std::vector<uint32_t> columns;
  columns.reserve(schema.size());
  for (const Series& series : schema.series()) columns.push_back(ColumnOf(series));
  return columns;
}

uint32_t SeriesUnion::Add(std::string name, const Series& series) {
  // Once one has had no room the others have none: which are there must not depend on their length.
  if (!left_out_.empty() || !room_.Take(series)) {
    LeaveOut(std::move(name));
    return kLeftOut;
  }
  const auto column = static_cast<uint32_t>(series_.size());
  index_.emplace(std::move(name), column);
  series_.push_back(series);
  const bool spread = series.metric.spread && spreads_ < SpreadColumns::kMax;
  spread_.push_back(spread ? spreads_++ : kNoSpread);
  return column;
}

void SeriesUnion::LeaveOut(std::string name) {
  if (left_out_.size() < kMaxSeries) left_out_.insert(Fnv1a64(name));
  if (first_left_out_.empty()) first_left_out_ = std::move(name);
}

std::string SeriesUnion::LeftOutNote() const {
  return fmt::format(
      "series are missing in the totals over all nodes, the first of them {}: there is room for {}",
      first_left_out_, size());
}

std::vector<uint32_t> SeriesUnion::SpreadsOf(const Schema& schema,
                                             const std::vector<uint32_t>& columns) const {
  std::vector<uint32_t> spreads;
  for (size_t i = 0; i < schema.size(); ++i) {
    if (!schema[i].metric.spread) continue;
    spreads.push_back(columns[i] == kLeftOut ? kNoSpread : spread_[columns[i]]);
  }
  return spreads;
}

const Schema::Ptr& SeriesUnion::schema() {
  if (schema_ == nullptr || schema_->size() != series_.size()) schema_ = Schema::Make(series_);
  return schema_;
}

}  // namespace sonde::tree
