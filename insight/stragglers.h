// Which nodes or ranks do not behave as the others do: how much, in which direction, since when,
// and in which phase.
//
// All of one metric, each row a node or rank with a value for each tick:
//
//   d(row, tick) = value - median of the rows at the tick     what all rows do together is no
//                                                              deviation of any
//   D(row)       = mean of d over the ticks of a window        single values far off are cut
//   score        = (D - median of D) / deviation of D          by insight/robust.h, over the rows,
//                                                              and no less than the measurement's
//
// A row stands out in a window if its score is beyond OutlierLimit, which is made for the farthest
// of all rows. The windows are the whole time, its halves, quarters and eighths, and the phases.
// The whole time has half of `by_chance`, the others share the other half (Bonferroni). So a step
// whose rows differ by normal noise, however large it is and however it remembers itself, has a
// straggler with a chance of `by_chance` at most, whatever the number of rows. Without noise every
// small difference would be beyond it: so a row must also be `relevant_share` of the others' level
// away, and `relevant`.
//
// A counter that is read in whole steps of q (CPU time: 10 ms) has rates that differ though nothing
// does, and are equal though something differs. What it counted in a window is the difference of
// two readings, each cut off: its deviation is q / sqrt(6), that of the mean `resolution` /
// (sqrt(6) ticks), with as many of them as the window has parts. No deviation of D is taken for
// less.
//
// The spread of few rows is hardly known, and the limit is so large that a name is right: with 4
// rows a row stands out if it is some 17 deviations away, with 8 some 9, with 100 some 5. Of three
// it would have to be 150. Of two nobody can say which is wrong, so none is named; `differ` says
// whether they differ.
//
// Since when: the segments (insight/change_points.h) of the row's own d in which it is at least
// half as far away as in the farthest one.
//
// Thread safety: values and functions without state.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/status.h"

namespace sonde::insight {

using Row = std::vector<double>;  // a value for each tick; NaN: missing

// A phase that comes several times has several parts: ticks from the first to before the second.
struct NamedTicks {
  std::string name;
  std::vector<std::pair<size_t, size_t>> parts;
};

struct StragglerOptions {
  double by_chance = 0.005;
  double relevant_share = 0.05;
  double relevant = 0;             // in the metric's unit
  double resolution = 0;           // steps in which the value of a tick is known, in that unit
  std::vector<NamedTicks> phases;  // which are told apart
  size_t most = 16;                // stragglers
};

// Of a row, beside the others, in some ticks.
struct Beside {
  double value = 0;   // mean of the row
  double others = 0;  // mean of the median of the rows at each tick
  // In the window where the row stands out most, or in the phase; kMostScore at most: without
  // noise it would be infinite.
  double score = 0;
  // value / others - 1; infinite where the others have nothing.
  double Share() const;
};
inline constexpr double kMostScore = 1000;

struct Straggler {
  size_t row = 0;
  Beside overall;    // in the ticks since `begin` before `end` in which it stands out
  size_t begin = 0;  // tick
  size_t end = 0;
  std::vector<std::pair<size_t, size_t>> parts;  // those ticks
  // In which it stands out; empty: in none by itself, or there are none.
  std::vector<std::pair<std::string, Beside>> phases;
};

struct StragglerFindings {
  std::vector<Straggler> stragglers;  // the farthest first
  size_t rows = 0;                    // that have enough values
  double level = 0;                   // mean of the ticks' medians
  double spread = 0;                  // deviation of the rows' D over the whole time
  double limit = 0;                   // of the score over the whole time
  // Of exactly two rows: whether they differ beyond chance and by what matters.
  bool differ = false;
  Row medians;  // of the rows at each tick
};

// kInvalid for rows of different lengths and infinite values. Rows that have less than half of the
// values of a window are not judged there.
Result<StragglerFindings> FindStragglers(std::span<const Row> rows,
                                         const StragglerOptions& options = {});

// The median of the rows at each tick; NaN where no row has a value.
Row MediansOf(std::span<const Row> rows);

}  // namespace sonde::insight
