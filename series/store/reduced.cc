#include "series/store/reduced.h"

#include <algorithm>
#include <string>

namespace sonde {
namespace {

// Never to change: packed owners stand in blocks on disk.
constexpr uint64_t kRankBits = 26;
constexpr uint64_t kRankField = uint64_t{1} << kRankBits;
constexpr double kPackedEnd = static_cast<double>(kRankField * kRankField);

// The statistics of a series, by their column.
std::string StatName(const Metric& metric, size_t column) {
  if (column < kStatColumns) return std::string(kStatNames[column]);
  const std::string_view name = kSpreadNames[column - kStatColumns];
  if (!IsCounting(metric.type)) return std::string(name);
  return std::string(kRateStat).append(name);
}

constexpr Spread Nothing() {
  Spread spread{};
  spread.fill(std::numeric_limits<double>::quiet_NaN());
  return spread;
}

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
    case Reduction::kUnknown:
      break;
  }
  return std::nan("");
}

Schema::Ptr ReducedSchema(const std::vector<Series>& series) {
  std::vector<Series> reduced;
  reduced.reserve(series.size() * kStatColumns);
  for (const Series& s : series) {
    for (size_t column = 0; column < ReducedColumns(s.metric); ++column) {
      reduced.push_back(s);
      reduced.back().tags.Set(kStatTag, StatName(s.metric, column));
    }
  }
  return Schema::Make(std::move(reduced));
}

std::vector<Series> BaseSeries(const Schema& reduced) {
  std::vector<Series> base;
  for (size_t i = 0; i < reduced.size();) {
    const size_t columns = ReducedColumns(reduced[i].metric);
    if (columns > reduced.size() - i) return {};
    for (size_t c = 0; c < columns; ++c) {
      const std::string* stat = reduced[i + c].tags.Find(kStatTag);
      if (stat == nullptr || *stat != StatName(reduced[i].metric, c)) return {};
    }
    base.push_back(reduced[i]);
    base.back().tags.Erase(kStatTag);
    i += columns;
  }
  return base;
}

Spread SpreadOf(const QuantileSketch& sketch) {
  Spread spread{};
  for (size_t i = 0; i < kSpreadColumns; ++i) spread[i] = sketch.Percentile(kSpreadShares[i]);
  return spread;
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

void ToColumns(const std::vector<Series>& series, std::span<const Reduced> values,
               std::span<const Spread> spreads, std::span<double> columns) {
  double* to = columns.data();
  size_t next = 0;
  for (size_t i = 0; i < series.size(); ++i) {
    ToColumns(i < values.size() ? values[i] : Reduced(), to);
    to += kStatColumns;
    if (!series[i].metric.spread) continue;
    const Spread spread = next < spreads.size() ? spreads[next] : Nothing();
    to = std::copy(spread.begin(), spread.end(), to);
    ++next;
  }
}

void FromColumns(const std::vector<Series>& series, std::span<const double> columns,
                 std::vector<Reduced>& values, std::vector<Spread>& spreads) {
  const double* from = columns.data();
  values.clear();
  spreads.clear();
  for (const Series& s : series) {
    values.push_back(FromColumns(from));
    from += kStatColumns;
    if (!s.metric.spread) continue;
    std::copy_n(from, kSpreadColumns, spreads.emplace_back().begin());
    from += kSpreadColumns;
  }
}

}  // namespace sonde
