// Up to 500 runs beside each other: for each number how it spreads over the runs, and which runs
// stand out. profiles/compare/compare.h compares few runs, one by one.
//
// One run after the other is read, and only its numbers are kept.
//
// Where a number differs, its weight is that of the run with the least against the run with the
// greatest (weight.h). A run stands out if it is further from the median than chance would put one
// of so many normal numbers (insight/robust.h) in 0.1 % of all cases, and by kNoiseRule of the
// median at least.
//
// Thread safety: values and functions without state.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/status.h"
#include "profiles/archive/archive.h"
#include "profiles/compare/find_runs.h"
#include "profiles/compare/numbers.h"
#include "profiles/select/selection.h"

namespace sonde {

inline constexpr size_t kMostManyRuns = 500;
// Of all runs together: those of 500 runs with 4000 series each.
inline constexpr size_t kMostNumbers = 2'000'000;

struct ManyRunsQuestion {
  std::vector<std::string> names;  // steps or profiles' keys
  Selection selection;             // without names: all that pass it and have ended
};

// What is asked about: kInvalid if it is fewer than two runs or more than kMostManyRuns.
struct FoundRuns {
  Entries entries;     // as they were named, else in the selection's order; without their nodes
  size_t running = 0;  // that pass the selection too
};
Result<FoundRuns> FindManyRuns(const Archive& archive, const ManyRunsQuestion& question);

// Of numbers in ascending order, with linear interpolation between neighbours: type 7 of Hyndman
// and Fan, "Sample Quantiles in Statistical Packages" (The American Statistician 50, 1996).
double QuantileOf(const std::vector<double>& ascending, double share);

struct SpreadRow {
  NumberKind kind;
  std::vector<uint32_t> runs;  // that have the number, ascending
  std::vector<double> values;  // theirs
  double min = 0, p10 = 0, median = 0, p90 = 0, max = 0;
  std::vector<uint32_t> apart;  // runs that stand out, the furthest first
  double weight = kMissing;     // NaN: not known
  Standing standing = Standing::kSame;
};

struct ManyRuns {
  FoundRuns found;
  std::vector<SpreadRow> rows;  // what matters most first
};
// kLimit: the runs have more than kMostNumbers numbers.
Result<ManyRuns> LoadManyRuns(const Archive& archive, FoundRuns found);

// docs/endpoints.md describes it.
std::string ManyRunsToJson(const ManyRuns& runs);

}  // namespace sonde
