// Series as weighted means of neighbouring values, and the exact search for their best segments:
// PELT (Killick, Fearnhead, Eckley, "Optimal detection of changepoints with a linear computational
// cost", JASA 107, 2012), for several series together. insight/change_points.h says what is
// searched for and with which penalty.
//
// Thread safety: values and functions without state.
#pragma once

#include <cstddef>
#include <limits>
#include <vector>

namespace sonde::insight {

using Cuts = std::vector<size_t>;  // where segments begin, with 0 and the end of the series

// One series as weighted means of neighbouring values, and its sums up to each of them.
struct Binned {
  std::vector<double> y;       // 0 where nothing is there
  std::vector<double> weight;  // values in the bin
  std::vector<double> sum_w;   // of those before
  std::vector<double> sum_y;
  double variance = 1;  // v, of a value

  void Sum() {
    sum_w.assign(y.size() + 1, 0);
    sum_y.assign(y.size() + 1, 0);
    for (size_t i = 0; i < y.size(); ++i) {
      sum_w[i + 1] = sum_w[i] + weight[i];
      sum_y[i + 1] = sum_y[i] + weight[i] * y[i];
    }
  }
  double Mean(size_t begin, size_t end) const {
    const double w = sum_w[end] - sum_w[begin];
    return w > 0 ? (sum_y[end] - sum_y[begin]) / w : std::numeric_limits<double>::quiet_NaN();
  }
  // What the segment's mean takes off the sum of squares.
  double Explained(size_t begin, size_t end) const {
    const double w = sum_w[end] - sum_w[begin];
    const double s = sum_y[end] - sum_y[begin];
    return w > 0 ? s * s / w / variance : 0;
  }
};
using Joined = std::vector<Binned>;

// What the means of a segment take off the sums of squares of all series, in their variances.
double ExplainedOf(const Joined& all, size_t begin, size_t end);

// The cuts with the least sum, and that sum without the constant sum of squares.
struct BestCuts {
  Cuts cuts;
  double sum = 0;
};

// Segments have `shortest` bins or more; all series have as many bins.
BestCuts Pelt(const Joined& all, double penalty, size_t shortest);

// The values without the means of their segments.
Binned RestOf(const Binned& one, const Cuts& cuts);

// v of insight/change_points.h: the long-run variance of what the segments leave, of a single
// value.
double LongRunVariance(const Binned& one, const Cuts& cuts);

}  // namespace sonde::insight
