// The time of a step in ticks of equal length, into which series are put: gauges as the mean of
// what was measured in a tick, counters as the rate per second over it.
//
// A value belongs to the tick that it ends. A counter that is read every 10 s has the same rate in
// all ticks between two readings. Where a counter falls (a daemon was started anew) nothing is
// known.
//
// Thread safety: none; values.
#pragma once

#include <cstddef>
#include <vector>

#include "core/job.h"
#include "core/time.h"

namespace sonde::insight {

struct TickGrid {
  Nanos first = 0;  // where the first tick begins
  Nanos width = 0;
  size_t count = 0;

  Nanos Begin(size_t tick) const { return first + static_cast<Nanos>(tick) * width; }
  // The tick that a time ends, the first or the last one for what is outside.
  size_t At(Nanos time) const;
  double Seconds() const { return static_cast<double>(width) / kSecond; }
};

// Ticks of the step's period or, if there would be more than `most`, of several of them.
TickGrid GridOf(const JobDescription& job, size_t most);

// Fewer and longer ones where `rows` rows of them, of nodes or ranks, would be more numbers than
// can be held; kFewestRowTicks of any number of rows.
inline constexpr size_t kMostInRows = 16'000'000;
inline constexpr size_t kFewestRowTicks = 60;
TickGrid GridOfRows(const JobDescription& job, size_t rows, size_t most);

class TickFiller {
 public:
  // `grid` outlives it.
  TickFiller(const TickGrid& grid, bool counts);
  // In the order of time; NaN: missing.
  void Add(Nanos time, double value);
  // For each tick; NaN: missing.
  std::vector<double> Take() const;

 private:
  void AddAmount(Nanos from, Nanos to, double rate);

  const TickGrid* grid_;
  bool counts_;
  bool any_ = false;
  Nanos time_ = 0;
  double value_ = 0;
  std::vector<double> sum_;
  std::vector<double> weight_;  // gauges: values; counters: the share of the tick that is known
};

// Adds rows as long as each other: what only one knows stays. An empty one takes the other.
void AddKnown(const std::vector<double>& from, std::vector<double>& to);

}  // namespace sonde::insight
