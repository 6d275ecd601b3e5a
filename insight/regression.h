// Whether a number of a new run is worse than those of the runs before, by more than chance.
//
// Of n earlier values with the mean m and the standard deviation s the next one is judged by the
// interval in which it lies (Hahn, Meeker, "Statistical Intervals", 1991, 4.7):
//
//   limit = t * s * sqrt(1 + 1/n)     t: Student's t with n - 1 degrees of freedom is larger with
//                                     the chance that is given
//
// and, as what is small does not matter, by `least` of the mean. An earlier value that is further
// from the median than the farthest of n normal ones is in all but 1 of 1,000 cases
// (insight/robust.h) is left out: one run on a disturbed machine shall not hide all that comes
// after it. Of fewer than some ten runs nobody can tell which one was disturbed.
//
// Where k numbers of a run are judged, each gets chance / k (Bonferroni), so that a run that is as
// the others were is called worse with that chance at most, whatever k is. The bound holds for
// values with normal noise that do not depend on each other's order.
//
// Thread safety: functions without state.
#pragma once

#include <cstddef>
#include <span>

namespace sonde::insight {

enum class Better { kLess, kMore, kUnknown };

struct Judgement {
  static constexpr size_t kEnough = 4;  // earlier runs

  size_t runs = 0;  // earlier ones that count
  size_t left_out = 0;
  double usual = 0;  // their mean; NaN: there are none
  double value = 0;
  double limit = 0;  // the largest difference that is no news
  bool differs = false;
  bool worse = false;  // and which way is known
};

// Fewer than kEnough values judge nothing. NaN: a run without the number.
Judgement JudgeRun(std::span<const double> before, double value, Better better, double chance,
                   double least);

}  // namespace sonde::insight
