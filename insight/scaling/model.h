// How a metric grows with the size of a run: a model in the performance model normal form, as
// Extra-P makes it (terms.h). With one parameter it has one term,
//
//   f(p) = constant + coefficient * p^(n/d) * log2(p)^l
//
// or none: then the metric does not depend on the size. With two parameters it has the product of
// the terms of both, their sum, or the product and one of the two.
//
// docs/analysis.md tells how a model is chosen, with all formulas and how often it is right.
//
// Thread safety: values and functions without state.
#pragma once

#include <array>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "insight/scaling/curve.h"
#include "insight/scaling/runs.h"

namespace sonde::insight {

// Sizes, for a trend: of fewer no order can tell a trend from chance, and there is none.
inline constexpr size_t kEnoughSizes = 5;
// How often noise makes a trend, at most.
inline constexpr double kByChance = 0.05;

struct ScalingModel {
  Curve curve;
  // Other curves that are about as good, for the band.
  std::vector<Curve> others;
  size_t parameters = 1;

  // Quality; quality.h has the formulas.
  double rss = 0;    // residual sum of squares over the places' means
  double smape = 0;  // of the predictions of left-out places, in percent
  double adjusted_r2 = 0;
  double noise = 0;   // relative standard deviation of runs of one size; NaN: no size has two
  double chance = 1;  // how often noise makes a trend as clear; 1: nothing was tried
  size_t runs = 0;
  size_t left_out = 0;            // runs that lie far from the others of their size
  size_t places = 0;              // that are different
  std::array<size_t, 2> sizes{};  // of each parameter
  // Sizes of the longest series of runs in which one parameter changes and the other stays.
  std::array<size_t, 2> line{};
  Place least, most;      // what was measured
  bool positive = false;  // no run has a value below 0

  bool constant() const { return curve.products().empty(); }
  double At(const Place& place) const { return curve.At(place); }
  double At(double size) const { return curve.At({size, 1}); }
  // As Extra-P writes it: "1.5 + 0.25 * size^(3/2) * log2(size)^(1)".
  std::string Text(std::string_view first, std::string_view second = "") const;
};

// With one parameter.
struct ScalePoint {
  double size = 0;  // tasks, for example; at least 1
  double value = 0;
};

// kInvalid for no points, for sizes below 1 and for what is not finite.
Result<ScalingModel> FitScaling(std::span<const ScalePoint> points);
// The same of runs with one parameter, the first, or two.
Result<ScalingModel> FitModel(std::span<const RunAt> runs, size_t parameters);

}  // namespace sonde::insight
