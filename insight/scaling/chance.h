// Whether a trend is more than chance: a permutation test (Fisher, "The Design of Experiments",
// 1935).
//
// The best of many terms fits noise well, too. So the values are dealt out to the sizes in other
// orders. If nothing depends on the size, the order that there is is one like any other: in one
// case of twenty its best curve explains more than those of 95 % of all orders. This holds whatever
// the distribution of the noise is. The curves are lines over log2(p) and p, and over 1/p and p^2
// with a coefficient above 0.
//
// The means of the sizes are dealt out: in all orders, of more than kAllOrders sizes in kOrders
// that are drawn. Where sizes have several runs, single runs are dealt out as well, and the larger
// of the two shares counts. The first one holds even if all runs of a size have a disturbance in
// common, the second one even if the sizes have different numbers of runs.
//
// Thread safety: functions without state.
#pragma once

#include <span>
#include <vector>

#include "insight/scaling/runs.h"

namespace sonde::insight {

inline constexpr size_t kAllOrders = 6;
inline constexpr size_t kOrders = 200;

// The share of orders in which the best curve over the first parameter explains as much. As soon as
// that is more than `enough` no other order is looked at, so a larger share may be told too small.
double ChanceOfTrend(const Runs& runs, double enough);

// The same for several lines over the same sizes, each a row of `values` with a value for each
// size, that are looked at as their mean: the values of each line are dealt out by themselves, in
// kOrders. Then the noise of lines has no order in common, as a trend has, so that weaker ones are
// seen. What counts is the square that a curve over one of the shapes explains of the mean.
double ChanceOfLines(std::span<const double> sizes, std::vector<std::vector<double>> lines,
                     double enough);

}  // namespace sonde::insight
