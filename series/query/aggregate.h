// Aggregates of several values: OpenTSDB's aggregators over the values of a bucket, or of the
// series of a group at one time.
//
// NaN is passed over; if there is nothing but NaN, the count is 0 and every other aggregate NaN.
//
// Thread safety: functions without state, and values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "series/query/query.h"

namespace sonde {

// The sum, minimum, maximum, mean or count that an aggregator computes: OpenTSDB's aggregators that
// differ only in a series' value between its points have the same basis. Others are their own.
Aggregator Basis(Aggregator aggregator);

// Whether it needs all values at once: parts of a group do not merge (series/query/group_values.h),
// and every series has to be there.
bool NeedsAllValues(Aggregator aggregator);

// The caller adds values in the order of time, or of their series. Keeps no more than the
// aggregator needs.
class Accumulator {
 public:
  explicit Accumulator(Aggregator aggregator) : aggregator_(Basis(aggregator)) {}

  void Add(double value);
  double Get();
  void Clear();

 private:
  Aggregator aggregator_;
  size_t count_ = 0;
  double first_ = 0;
  double last_ = 0;
  double value_ = 0;    // the sum, the extreme or the product so far; the mean, for dev
  double squares_ = 0;  // of the distances from the mean
  std::vector<double> values_;
};

// Of sums and differences of whole numbers.
__extension__ typedef __int128 Wide;  // NOLINT(modernize-use-using): no extension there

// For one or more whole numbers, with OpenTSDB's integer arithmetic: exact, averages cut off
// towards zero, products with their lowest 64 bits. Nothing where 64 bits do not hold the result,
// and for deviations and percentiles, which are not worked out in whole numbers: Fold, cut off, has
// these.
std::optional<int64_t> FoldIntegers(Aggregator aggregator, std::vector<int64_t>& values);
// Fold of whole numbers, cut off towards zero; `values` are sorted if the aggregator needs that.
double FoldCutOff(Aggregator aggregator, std::vector<double>& values);
// For any values, in the order of their series; may sort `values`.
double Fold(Aggregator aggregator, std::vector<double>& values);

// Whether the aggregate of one value is that value.
bool KeepsOneValue(Aggregator function);

}  // namespace sonde
