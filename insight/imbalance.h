// How unevenly work is spread over nodes or ranks, and what that costs where all wait for the last.
//
//   factor       max / mean - 1          "percent imbalance" (Pearce, Gamblin, de Supinski, Schulz,
//                                        Amato, "Quantifying the effectiveness of load balance
//                                        algorithms", ICS 2012); 0: even; n - 1: one does all
//   lost         (max - mean) / max      the share of the time that an even spread would save, if
//                                        the work of the farthest sets the pace
//   percentage   lost * n / (n - 1)      "imbalance percentage" (DeRose, Homer, Johnson, "Detecting
//                                        application load imbalance on high end massively parallel
//                                        systems", Euro-Par 2007): 1: one does all, whatever n is
//
// These are of amounts: of time or work, the more the later. Of a rate of progress they say
// nothing.
//
// Thread safety: values and functions without state.
#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <vector>

namespace sonde::insight {

struct Imbalance {
  size_t count = 0;  // of values
  size_t most = 0;   // which one is the largest
  double mean = std::numeric_limits<double>::quiet_NaN();
  double max = std::numeric_limits<double>::quiet_NaN();
  double factor = std::numeric_limits<double>::quiet_NaN();
  double lost = std::numeric_limits<double>::quiet_NaN();
  double percentage = std::numeric_limits<double>::quiet_NaN();
};

// NaNs are left out. Without a value above 0, or with fewer than two values, only count, mean and
// max are known.
Imbalance ImbalanceOf(std::span<const double> values);

struct ImbalanceOverTime {
  // Of each row's mean over the ticks. Rows that fall behind in turn are even here.
  Imbalance overall;
  // At each tick: `factor` and `lost`; NaN where they are not known.
  std::vector<double> factors;
  std::vector<double> losses;
  // The sum of max - mean over that of max: lost if all wait for each other at every tick.
  double lost_by_tick = std::numeric_limits<double>::quiet_NaN();
};

// `rows` are nodes or ranks, with a value for each tick; NaN: missing.
ImbalanceOverTime ImbalanceOverTicks(std::span<const std::vector<double>> rows);

}  // namespace sonde::insight
