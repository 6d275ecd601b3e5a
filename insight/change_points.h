// Where the level of one series changes, or of several together: phases that nobody annotated.
//
// The segments are those with the least
//
//   sum over segments, series and their values of (y - mean of the segment)^2 / v
//     + penalty * (number of segments - 1)
//
// found exactly by PELT (Killick, Fearnhead, Eckley, "Optimal detection of changepoints with a
// linear computational cost", JASA 107, 2012), over at most kBins means of neighbouring values;
// each change is then put to the sample where the sum is least. The penalty is what a change that
// is not there gains by chance: with d series twice the gain of a split is chi^2 of d degrees,
// which exceeds
//
//   d + 2 sqrt(d x) + 2 x   with a chance of exp(-x) at most
//
// (Laurent and Massart, "Adaptive estimation of a quadratic functional by model selection", Annals
// of Statistics 28, 2000, lemma 1), and x = ln(bins / by_chance) is for all places of a split
// together.
//
// v is the long-run variance of a series' noise, not its variance: noise that remembers itself has
// slow waves that look like levels. If each value keeps the share r of the one before, it is
// variance * (1 + r) / (1 - r) (Andrews, "Heteroskedasticity and autocorrelation consistent
// covariance matrix estimation", Econometrica 59, 1991), and least squares with so much larger a
// penalty finds the changes in such noise, too (Lavielle and Moulines, "Least-squares estimation of
// an unknown number of shifts in a time series", J. Time Series Analysis 21, 2000). v begins as the
// noise of neighbouring values, from the median of their differences, which changes of level hardly
// touch. The noise that the segments leave, with r by its lag-1 correlation (corrected for the
// segments' own means: Kendall, "Note on bias in the estimation of autocorrelation", Biometrika 41,
// 1954), then says whether v was too small, and the search is done again until both agree. So a
// random walk has no changes: it remembers all.
//
// What else looks like levels and is none:
//   - A trend. A straight line, whose slope is the median of the slopes over tenths of the series,
//     is taken off where the sum is less without it. A change stays only if two levels fit its two
//     segments better than one straight line does.
//   - A series that repeats itself (insight/periods.h): the mean of its cycles is taken off. So
//     phases that take turns at regular intervals, five times or more, are one phase that repeats.
//   - Single values far off: they are cut (insight/robust.h), and a change that would not stand
//     without its two farthest values does not stand.
//
// Segments have `shortest` samples or more; in a series of more than kBins values also three bins.
//
// Thread safety: values and functions without state.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "core/status.h"

namespace sonde::insight {

struct ChangeOptions {
  size_t shortest = 5;      // samples of a segment
  double by_chance = 0.01;  // how often a series of white noise has a change, at most
};

struct Segment {
  size_t begin = 0;
  size_t end = 0;             // the first sample behind it
  std::vector<double> means;  // of each series, as they were given; NaN: nothing was measured
};

inline constexpr size_t kBins = 1024;
inline constexpr size_t kMostJoined = 64;  // series

// Where segments begin, but for the first: ascending, empty if nothing changes. All series have the
// same times; NaN: missing. kInvalid for series of different lengths, more than kMostJoined, values
// that are infinite, and options that make no sense.
Result<std::vector<size_t>> FindChanges(std::span<const std::vector<double>> series,
                                        const ChangeOptions& options = {});

// The same with the mean of each segment. One segment if nothing changes; none of no values.
Result<std::vector<Segment>> FindSegments(std::span<const std::vector<double>> series,
                                          const ChangeOptions& options = {});

}  // namespace sonde::insight
