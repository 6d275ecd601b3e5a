#include "series/reduced.h"

#include <algorithm>

namespace sonde {
namespace {

// Never to change: packed owners stand in blocks on disk.
constexpr uint64_t kRankBits = 26;
constexpr uint64_t kRankField = uint64_t{1} << kRankBits;
constexpr double kPackedEnd = static_cast<double>(kRankField * kRankField);

}  // namespace

double Owner::Pack() const {
  if (node >= kRankField) return std::nan("");
  const uint64_t field = rank >= kRankField - 2 ? 0 : uint64_t{rank} + 1;
  return static_cast<double>(node * kRankField + field);
}

Owner Owner::Unpack(double packed) {
  if (!(packed >= 0 && packed < kPackedEnd) || packed != std::floor(packed)) return {};
  const auto whole = static_cast<uint64_t>(packed);
  const uint64_t field = whole % kRankField;
  Owner owner;
  owner.node = static_cast<uint32_t>(whole / kRankField);
  if (field != 0) owner.rank = static_cast<uint32_t>(field - 1);
  return owner;
}

double Reduced::Value(Reduction reduction) const {
  if (!(count > 0)) return std::nan("");
  switch (reduction) {
    case Reduction::kSum:
      return sum;
    case Reduction::kMean:
      return Mean();
    case Reduction::kMin:
      return min;
    case Reduction::kMax:
      return max;
  }
  return sum;
}

Schema::Ptr ReducedSchema(const std::vector<Series>& series) {
  std::vector<Series> reduced;
  reduced.reserve(series.size() * kStatColumns);
  for (const Series& s : series) {
    for (const std::string_view stat : kStatNames) {
      reduced.push_back(s);
      reduced.back().tags.Set(kStatTag, stat);
    }
  }
  return Schema::Make(std::move(reduced));
}

void ToColumns(const Reduced& value, double* columns) {
  if (!(value.count > 0)) {
    std::fill_n(columns, kStatColumns, std::nan(""));
    return;
  }
  columns[0] = value.count;
  columns[1] = value.sum;
  columns[2] = value.min;
  columns[3] = value.max;
  columns[4] = value.sum_sq;
  columns[5] = value.min_owner.Pack();
  columns[6] = value.max_owner.Pack();
}

Reduced FromColumns(const double* columns) {
  Reduced value;
  if (!(columns[0] > 0)) return value;
  value.count = columns[0];
  value.sum = columns[1];
  value.min = columns[2];
  value.max = columns[3];
  value.sum_sq = columns[4];
  value.min_owner = Owner::Unpack(columns[5]);
  value.max_owner = Owner::Unpack(columns[6]);
  return value;
}

}  // namespace sonde
