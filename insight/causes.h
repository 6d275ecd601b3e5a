// Why a node or rank falls behind: which of its other series are away from the others' too, in the
// direction that would explain it, at the same times.
//
// A suspect is one metric of all nodes or ranks. It is named if it has evidence, which is two
// things:
//
//   away       In the straggler's ticks its own mean is beyond the others' median, in the suspect's
//              direction, by `least` and by `relevant_share` of the others' level; and
//                - by OutlierLimit of the rows' means (as in insight/stragglers.h, for which three
//                  rows or more are needed), or
//                - its deviations follow those of the straggler's metric: Spearman's rank
//                  correlation over the ticks ("The proof and measurement of association between
//                  two things", Am. J. Psychology 15, 1904) is kFollows or more, and beyond chance
//                  for n (1 - a b) / (1 + a b) independent ticks, with the lag-1 correlations a and
//                  b of both (Pyper and Peterman, "Comparison of methods to account for
//                  autocorrelation in correlation analyses of fish data", Can. J. Fish. Aquat. Sci.
//                  55, 1998).
//   same time  If the straggler was as the others are in at least kFewestOutside ticks, the suspect
//              must have been at most half as far away in those.
//
// `by_chance` is shared by all suspects. Evidence is no proof: what is named goes together with the
// straggler, and may be its effect.
//
// Thread safety: values and functions without state.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "insight/robust.h"
#include "insight/stragglers.h"

namespace sonde::insight {

struct Suspect {
  std::span<const Row> rows;        // of all nodes or ranks, with the straggler's ticks
  std::span<const double> medians;  // of the rows at each tick (MediansOf)
  size_t own = 0;                   // which row is the straggler's, or that of its node
  int direction = 1;                // 1: more of it explains, -1: less of it does
  double least = 0;  // what is less than that away, in the metric's unit, explains nothing
};

struct CauseOptions {
  double by_chance = 0.01;
  double relevant_share = 0.05;
};

inline constexpr double kFollows = 0.5;
inline constexpr size_t kFewestOutside = 5;

struct Cause {
  size_t suspect = 0;
  Beside inside;                      // the straggler's ticks
  double outside_value = kNoNumber;   // mean of the own row in the other ticks; NaN: too few
  double outside_others = kNoNumber;  // and of the medians
  double correlation = kNoNumber;     // Spearman's, over all ticks; NaN: one of both never changes
  bool beyond_limit = false;          // far from the other rows
  bool follows = false;               // correlated beyond chance
};

// Those with evidence: first those that follow the straggler or came with it, by their scores.
// `row` is the straggler's in the metric in which it was found, and `medians` are those of all rows
// of that metric (StragglerFindings).
std::vector<Cause> FindCauses(const Straggler& straggler, std::span<const double> row,
                              std::span<const double> medians, std::span<const Suspect> suspects,
                              const CauseOptions& options = {});

// Spearman's correlation of the places where both are there; NaN for fewer than 3, and if one is
// constant. Equal values share the mean of their ranks.
double RankCorrelation(std::span<const double> a, std::span<const double> b);

}  // namespace sonde::insight
