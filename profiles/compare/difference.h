// Groups of runs beside each other, completely read: `sonde diff` prints them and the page that
// compares shows them.
//
// Thread safety: values and functions without state.
#pragma once

#include <string>
#include <vector>

#include "profiles/archive/archive.h"
#include "profiles/compare/binned.h"
#include "profiles/compare/compare.h"

namespace sonde {

// The runs that are compared, completely read.
struct Difference {
  struct Group {
    std::string label;  // "A", "B", ...
    std::vector<ProfileEntry> entries;
    ComparedGroup runs;
    std::vector<BinnedRun> bins;  // of each run
  };
  std::vector<Group> groups;
  Comparison comparison;
  size_t besides = 0;  // runs of the same command that only tell the noise
  std::string phase;   // by which the runs are aligned; "": their starts
  Axis axis;
};

// How the noise was found, in words.
std::string NoiseStory(const Difference& diff);
// The band of a group's runs in each bin, of one metric or of one series.
std::vector<Band> BandsOf(const std::vector<std::vector<double>>& runs);
// Everything that is known, as JSON; docs/archive.md describes it.
std::string DiffToJson(const Difference& diff);

}  // namespace sonde
