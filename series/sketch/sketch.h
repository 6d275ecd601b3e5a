// A histogram as a value: how often each bucket (core/histogram_buckets.h) was hit, with the exact
// sum, minimum and maximum. Histograms of threads, ranks, nodes and ticks add up without loss.
//
// Thread safety: values, like std::vector.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/bytes.h"
#include "core/metric.h"
#include "core/status.h"

namespace sonde {

class Sketch {
 public:
  using Bucket = std::pair<uint32_t, uint64_t>;  // index, count above 0

  bool empty() const { return count_ == 0; }
  uint64_t count() const { return count_; }
  double sum() const { return sum_; }
  bool knows_extremes() const { return min_ <= max_; }
  // 0 while none is known.
  double min() const { return knows_extremes() ? min_ : 0; }
  double max() const { return knows_extremes() ? max_ : 0; }
  // Sorted by index.
  const std::vector<Bucket>& buckets() const { return buckets_; }

  // `count` values that fell into `bucket`, one of histogram::kBuckets; their sum and extremes come
  // by AddSum. Counts stay at the largest number there is instead of starting anew.
  void Add(uint32_t bucket, uint64_t count);
  // Leaves out arguments that are not finite, and both extremes if `min` is above `max`; so
  // everything in a sketch is finite.
  void AddSum(double sum, double min, double max);
  void Merge(const Sketch& other);

  // The value below which a share `q` (0 to 1) of all lies: the middle of the bucket that holds it,
  // within [min, max], so within 1/64 of the exact value if the bucket is a regular one. For 0 and
  // 1 the minimum and the maximum; NaN for an empty sketch.
  double Quantile(double q) const;

  // Never to change: docs/format.md. Decode gives kCorrupt for bytes that Encode cannot have
  // written; the reader is then bad, too.
  void Encode(ByteWriter& out) const;
  static Result<Sketch> Decode(ByteReader& in);

  bool operator==(const Sketch&) const = default;

 private:
  uint64_t count_ = 0;
  double sum_ = 0;
  double min_ = std::numeric_limits<double>::infinity();
  double max_ = -std::numeric_limits<double>::infinity();
  std::vector<Bucket> buckets_;
};

// The histogram of a metric. In messages that go up the tree the series has no tags task and host,
// and the sketch has the values since the last tick.
struct NamedSketch {
  Series series;
  Sketch sketch;
};

}  // namespace sonde
