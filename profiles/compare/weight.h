// How much of a step is behind a difference between runs: its weight, by which a comparison is
// ordered. A metric that doubled from next to nothing weighs next to nothing.
//
// The weight is the difference divided by the whole that it is a part of, at most 1. Of each number
// of the step the larger of the two groups' counts; T is the duration:
//
//   duration, phases            T
//   figures of merit            the figure itself, the larger: the run is judged by it
//   ratios                      1
//   seconds, by processors      T x the nodes' processors (node_cpu_, node_schedstat_)
//   seconds, by nodes           T x nodes (other node_ metrics); T where the step's number is a
//   mean other seconds               T x tasks or, if that is more, the tasks' CPU time bytes moved
//   all bytes that tasks, disks and network moved or, if that is more,
//                               what T x nodes could move at 100 MiB/s
//   memory                      the memory of a node; of all nodes where the step's number is a sum
//
// Nothing says of what other numbers, such as counts and temperatures, are a part.
//
// Thread safety: functions without state.
#pragma once

#include <string_view>

#include "core/metric.h"
#include "profiles/compare/compare.h"

namespace sonde {

// What a group's runs had, in the mean; NaN: not known.
struct StepSize {
  double seconds = kMissing;
  double nodes = kMissing;
  double tasks = kMissing;
  double processors = kMissing;   // of all nodes
  double cpu_seconds = kMissing;  // of the tasks
  double node_memory = kMissing;  // bytes
  double moved_bytes = kMissing;  // by tasks, disks and network
};
StepSize SizeOf(const ComparedGroup& group);

// What a number is, as far as its weight depends on it.
struct Weighed {
  CompareSection section = CompareSection::kOther;
  std::string_view metric;
  std::string_view unit;
  bool counts = false;  // a counter's total
  Reduction reduction = Reduction::kSum;
};

// 0 to 1; NaN: nothing says what the number is a part of. A number that one of the groups does not
// have counts as 0 there.
double WeightOf(const Weighed& what, double base, double other, const StepSize& of_base,
                const StepSize& of_other);

// Of a filesystem that holds no files but shows what the kernel knows: /proc, /sys, control groups,
// /dev (not /dev/shm).
bool IsOfPseudoFilesystem(const Tags& tags);

}  // namespace sonde
