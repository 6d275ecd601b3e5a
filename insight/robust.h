// Centre and spread of a few numbers of which some may be far off, and how far off is too far.
//
//   centre       median
//   deviation    b(n) * 1.4826 * median of |x - median|
//
// 1.4826 makes it the standard deviation of normal numbers (Hampel, "The influence curve and its
// role in robust estimation", JASA 69, 1974), and b(n) corrects it for few of them (Croux and
// Rousseeuw, "Time-efficient algorithms for two highly robust estimators of scale", COMPSTAT 1992).
// Up to half of the numbers may be anything.
//
// Thread safety: functions without state.
#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <vector>

namespace sonde::insight {

inline constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kMadOfNormal = 1.4826;

// NaNs are left out; NaN of no numbers. The first reorders what it is given, which has no NaN.
double MedianIn(std::span<double> values);
double MedianOf(std::span<const double> values);
// The mean of the numbers among them; NaN: there are none.
double MeanOf(std::span<const double> values);

struct Centre {
  double median = kNoNumber;
  double deviation = kNoNumber;  // 0: more than half of the numbers are equal
  size_t count = 0;              // of numbers, without NaNs
};
Centre CentreOf(std::span<const double> values);

// How many deviations from the median the farthest of `count` normal numbers is, in the share
// `by_chance` of all cases at most: the critical value of a test of all numbers together, so it
// needs no further correction for their count. For a share from 0.1 down. Infinite below three
// numbers: of two that differ nobody can say which is wrong.
//
// Of few numbers the spread itself is hardly known, so the value is large: 61 of 4, 17 of 6, 6 of
// 20. The numbers were simulated (robust.cc).
double OutlierLimit(size_t count, double by_chance);

// The standard deviation of what differs between neighbours in a series, from the median of their
// differences, which changes of level hardly touch; 0 if more than half of them are equal.
double NeighbourNoise(std::span<const double> values);

// The series with single values cut that are more than five times that noise away from the median
// of the seven values around them. A level stays, however far away it is.
std::vector<double> WithoutSpikes(std::span<const double> values);

}  // namespace sonde::insight
