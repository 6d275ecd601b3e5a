// Reduced values: one value for those that many nodes or tasks measured.
//
// Count, sum, minimum, maximum, sum of squares and owners of the extremes. Merging is associative
// and commutative up to the rounding of sums, so parts may arrive in any order and grouping. Of
// equal extremes the smaller owner wins, so the result does not depend on the order.
//
//   mean = sum / count;  population variance = sum_sq / count - mean^2
//
// In a store and in the archive a reduced series is seven plain series with the tag `stat`, so the
// same blocks, store and queries serve both. A metric that declares its spread also has
// percentiles: of a gauge's values, of a counter's rates per second since the point before.
// They come from sketches (series/sketch/quantile_sketch.h), within 1 %.
//
// Thread safety: values.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "series/block/schema.h"
#include "series/sketch/quantile_sketch.h"

namespace sonde {

// Who measured a value: a node's index and, where a task did, its rank.
struct Owner {
  static constexpr uint32_t kNobody = 0xffffffff;
  uint32_t node = kNobody;
  uint32_t rank = kNobody;
  auto operator<=>(const Owner&) const = default;

  // One number for a column: exact in a double. node * 2^26 + (rank + 1), NaN for nobody; ranks
  // from 2^26 - 2 on and nodes from 2^26 on are "nobody".
  double Pack() const;
  static Owner Unpack(double packed);
};

struct Reduced {
  double count = 0;
  double sum = 0;
  double min = std::numeric_limits<double>::infinity();
  double max = -std::numeric_limits<double>::infinity();
  double sum_sq = 0;
  Owner min_owner;
  Owner max_owner;

  // NaN is a missing value and is passed over.
  void Add(double value, Owner owner) {
    if (std::isnan(value)) return;
    count += 1;
    sum += value;
    sum_sq += value * value;
    if (value < min || (value == min && owner < min_owner)) min = value, min_owner = owner;
    if (value > max || (value == max && owner < max_owner)) max = value, max_owner = owner;
  }
  void Merge(const Reduced& o) {
    if (o.count == 0) return;
    count += o.count;
    sum += o.sum;
    sum_sq += o.sum_sq;
    if (o.min < min || (o.min == min && o.min_owner < min_owner))
      min = o.min, min_owner = o.min_owner;
    if (o.max > max || (o.max == max && o.max_owner < max_owner))
      max = o.max, max_owner = o.max_owner;
  }
  double Mean() const { return count > 0 ? sum / count : std::nan(""); }
  // The number for the whole step, by the metric's declaration. NaN if nothing was measured.
  double Value(Reduction reduction) const;
};

// The columns of a reduced series, in this order; the tag `stat` has these values.
inline constexpr size_t kStatColumns = 7;
inline constexpr std::array<std::string_view, kStatColumns> kStatNames = {
    "count", "sum", "min", "max", "sum_sq", "min_owner", "max_owner"};
inline constexpr std::string_view kStatTag = "stat";

// The percentiles that are recorded. The tag `stat` has these names, for rates with kRateStat
// before.
inline constexpr size_t kSpreadColumns = 4;
inline constexpr std::array<std::string_view, kSpreadColumns> kSpreadNames = {"p5", "p50", "p95",
                                                                              "p99"};
inline constexpr std::array<double, kSpreadColumns> kSpreadShares = {0.05, 0.50, 0.95, 0.99};
inline constexpr std::string_view kRateStat = "rate_";
// By kSpreadNames; all NaN where nothing was measured.
using Spread = std::array<double, kSpreadColumns>;
Spread SpreadOf(const QuantileSketch& sketch);

// How many columns a series has, reduced.
constexpr size_t ReducedColumns(const Metric& metric) {
  return kStatColumns + (metric.spread ? kSpreadColumns : 0);
}
// The schema of the store that holds `series` reduced.
Schema::Ptr ReducedSchema(const std::vector<Series>& series);
// The series that it was made from; empty if `reduced` is no schema of ReducedSchema.
std::vector<Series> BaseSeries(const Schema& reduced);
// One reduced value as kStatColumns columns and back; a value of count 0 is all NaN.
void ToColumns(const Reduced& value, double* columns);
Reduced FromColumns(const double* columns);
// A whole row by ReducedSchema(series) and back. `spreads`: for the series that have one, in their
// order; one that is not given is missing.
void ToColumns(const std::vector<Series>& series, std::span<const Reduced> values,
               std::span<const Spread> spreads, std::span<double> columns);
void FromColumns(const std::vector<Series>& series, std::span<const double> columns,
                 std::vector<Reduced>& values, std::vector<Spread>& spreads);

}  // namespace sonde
