// Who differs from the others, in words: what the head of a frame says of the values below it.
//
// The rules are few and coarse, for one look at the present; `sonde stragglers` and `sonde hints`
// judge a whole step. With m the median of the rows that have a value:
//
//   CPU, GPU  the least value stands out below 3/4 m, if it lies 10 % or more below it
//   memory    the largest stands out from 90 % on, or 25 % above m
//   MPI wait  the largest stands out 20 % above m
//
// Thread safety: functions without state.
#pragma once

#include <optional>
#include <span>

#include "cli/top/columns.h"

namespace sonde::cli::top {

struct Standout {
  size_t place = 0;  // of the worst
  double value = kNoValue;
  double median = kNoValue;
  size_t others = 0;  // that stand out as well
};
// Nothing: no row stands out, or the column is not judged.
std::optional<Standout> StandoutOf(Column column, std::span<const double> values);
// NaN if there is no value.
double MedianOf(std::span<const double> values);

}  // namespace sonde::cli::top
