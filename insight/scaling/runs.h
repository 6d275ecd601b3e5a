// Runs gathered by their sizes.
//
// Of several runs of one size the mean counts. A run that lies far from the median of its size is
// left out: further than kFar standard deviations of a run. These are told by all sizes together,
// from the median distance of runs to the median of their size (times 1.4826, which makes it a
// standard deviation of a normal distribution: Hampel, "The Influence Curve and its Role in Robust
// Estimation", JASA 69, 1974). All distances are relative to the values: runs that take longer
// vary more.
//
// Thread safety: values and functions without state.
#pragma once

#include <compare>
#include <cstddef>
#include <span>
#include <vector>

#include "core/status.h"

namespace sonde::insight {

// The sizes of a run: of one parameter, or of two.
struct Place {
  double first = 1;
  double second = 1;
  auto operator<=>(const Place&) const = default;
};

struct RunAt {
  Place place;
  double value = 0;
};

struct RunsAtPlace {
  Place place;
  std::vector<double> runs;  // those that count, ascending
  double mean = 0;
};

struct Runs {
  static constexpr double kFar = 4;

  std::vector<RunsAtPlace> places;  // ascending
  size_t count = 0;                 // of runs that count
  size_t left_out = 0;
  // Sum of the squared relative distances of runs from the mean of their place.
  double within = 0;
  // What is added to the absolute value before something is divided by it: a value near zero would
  // outweigh all others.
  double floor = 0;

  // The relative standard deviation of runs of one place; NaN if no place has two.
  double Noise() const;
};

// kInvalid for no runs, for sizes below 1 and for what is not finite.
Result<Runs> GatherRuns(std::span<const RunAt> runs);

}  // namespace sonde::insight
