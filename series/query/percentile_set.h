// Values whose percentiles are wanted, in a form that merges in any order and grouping: a few are
// kept as they are, more become a sketch (series/sketch/quantile_sketch.h), whose percentiles are
// within 1 % of the values between which they lie. Which of the two forms is used depends on the
// values alone, not on the order of merging.
//
// Values that are not finite are left out.
//
// Thread safety: values, like std::vector.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "core/bytes.h"
#include "series/sketch/quantile_sketch.h"

namespace sonde {

// As OpenTSDB estimates a percentile: between the values at both sides of share * (n + 1), if that
// is not before the first or after the last. `sorted` is not empty.
double PercentileAt(std::span<const double> sorted, double share);

class PercentileSet {
 public:
  // Values kept as they are; as many as the tasks of a large node have at one time.
  static constexpr size_t kMaxExact = 64;

  PercentileSet() = default;
  PercentileSet(const PercentileSet& other);
  PercentileSet(PercentileSet&&) = default;
  PercentileSet& operator=(PercentileSet other);
  ~PercentileSet() = default;

  void Add(double value);
  void Merge(const PercentileSet& other);
  // NaN if there are no values.
  double Get(double share) const;

  void Write(ByteWriter& out) const;
  // Turns `in` bad on what Write cannot have written.
  static PercentileSet Read(ByteReader& in);

 private:
  void Sketch();

  std::vector<double> values_;  // in order; empty once there is a sketch
  std::unique_ptr<QuantileSketch> sketch_;
};

}  // namespace sonde
