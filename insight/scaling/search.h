// The search for the term of one parameter.
//
// Thread safety: functions without state.
#pragma once

#include <optional>
#include <vector>

#include "insight/scaling/curve.h"
#include "insight/scaling/runs.h"

namespace sonde::insight {

struct FoundTerm {
  double chance = 1;           // chance.h
  std::optional<Curve> curve;  // nothing: no trend
  std::vector<Curve> others;   // that are about as good, by AboutAsGood
};
// Over the first parameter of the runs. A trend is claimed if noise makes one in `by_chance` of the
// cases at most.
FoundTerm FindTerm(const Runs& runs, double by_chance);
// The same where a trend was found before.
FoundTerm FindTermOfTrend(const Runs& runs);

// The most error that a curve may have to be about as good as the best one, so that the data do not
// rule it out: with t of Student's distribution for 95 %,
//
//   error of the best * (1 + t^2 / degrees)
//
// the bound of the profile likelihood (Bates, Watts, "Nonlinear Regression Analysis and Its
// Applications", 1988, chapter 6). `degrees`: runs less coefficients, and less one for each
// parameter whose term was chosen. Infinite without any.
double AboutAsGood(double best, size_t degrees);
// Of the curve through these runs; 0: there are none.
size_t DegreesOf(const Curve& curve, size_t runs);

}  // namespace sonde::insight
