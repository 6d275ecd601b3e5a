// The numbers of one run: of its summary, phases, figures of merit and footprint.
//
// Thread safety: values and functions without state.
#pragma once

#include <string>
#include <vector>

#include "core/metric.h"
#include "profiles/compare/compare.h"

namespace sonde {

// What a number is of; section and name together say which one it is.
struct NumberKind {
  CompareSection section = CompareSection::kOther;
  std::string name;
  std::string unit;
  std::string metric;   // may be ""
  bool counts = false;  // a counter's total
  Reduction reduction = Reduction::kSum;
  bool pseudo = false;  // of a filesystem that holds no files
};

struct RunNumber {
  NumberKind kind;
  double value = 0;         // NaN: the run has none
  bool told_above = false;  // another number of this run says the same
};

// Each number once, by section. The summary's are always there.
std::vector<RunNumber> NumbersOf(const ComparedRun& run);

}  // namespace sonde
