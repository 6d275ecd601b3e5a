// Quantiles of values that were measured in many places, as on all nodes and tasks at one tick,
// within 1 % and without the values: a count for each bucket, whose width is 1/64 of its lower
// bound, and the exact minimum and maximum.
//
// Merging is associative and commutative, bit for bit. At most kMaxBuckets buckets are kept, which
// at full resolution span 16 powers of two; if more are needed, pairs of neighbours in the whole
// sketch become one until they suffice: each time the error doubles. A part is never coarser than
// the whole has to be, so the order of merging does not matter to the result.
//
// Unlike series/sketch/sketch.h, whose buckets are fixed because an application fills them, this
// sketch takes any double and both signs. Values that are not finite are left out; values below
// 2^-1022 count as 0.
//
// Once its memory has grown, adding, merging and decoding into it allocate nothing.
//
// Thread safety: values, like std::vector.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/bytes.h"
#include "core/status.h"

namespace sonde {

class QuantileSketch {
 public:
  static constexpr size_t kMaxBuckets = 1024;
  // What Encode writes at most: level and number, then a gap and a count each, and the extremes.
  static constexpr size_t kMaxBytes = 3 + kMaxBuckets * (3 + 10) + 2 * sizeof(double);

  using Bucket = std::pair<int32_t, uint64_t>;  // index, count above 0

  bool empty() const { return buckets_.empty(); }
  // Stays at the largest number there is.
  uint64_t count() const { return count_; }
  // 0 while it is empty.
  double min() const { return min_; }
  double max() const { return max_; }
  const std::vector<Bucket>& buckets() const { return buckets_; }

  void Add(double value, uint64_t count = 1);
  void Merge(const QuantileSketch& other);
  // Empty again; keeps its memory.
  void Clear();

  // The value such that a share `q` (0 to 1) of all values is not larger, within Error(); for 0 and
  // 1 the minimum and the maximum. NaN for an empty sketch.
  double Quantile(double q) const;
  // As OpenTSDB estimates a percentile: between the values at both sides of share * (count + 1), if
  // that is not before the first or after the last. The median of two is between them. Each of the
  // two values is within Error(); so a percentile between values of different signs, which may be
  // near 0, is within Error() of the larger of the two.
  double Percentile(double share) const;
  // The largest relative error of a quantile: 1/128, unless the values' range is too wide.
  double Error() const;

  void Encode(ByteWriter& out) const;
  // Replaces the contents. kCorrupt for bytes that Encode cannot have written: the reader is then
  // bad, and the sketch empty.
  Status Decode(ByteReader& in);

  bool operator==(const QuantileSketch&) const = default;

 private:
  void Coarsen(uint8_t level);
  double At(double rank) const;
  bool ReadBuckets(ByteReader& in);

  std::vector<Bucket> buckets_;  // by index, which is in the order of values; 0 is the bucket of 0
  uint64_t count_ = 0;
  double min_ = 0;
  double max_ = 0;
  uint8_t level_ = 0;  // how often neighbours were joined
};

}  // namespace sonde
