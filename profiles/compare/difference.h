// What `sonde diff` prints.
//
// Thread safety: functions without state.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/diff_series.h"
#include "profiles/compare.h"

namespace sonde::cli {

// What is compared, all of it read.
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
  std::string phase;   // that the runs are aligned by; "": their starts
  Axis axis;
};

struct DiffTextOptions {
  bool all = false;                // also what is within noise, of all series
  std::vector<std::string> plots;  // metrics
};
std::string DiffToText(const Difference& diff, const DiffTextOptions& options,
                       const Environment& env);
std::string DiffToJson(const Difference& diff);

// How the noise was told, in words.
std::string NoiseStory(const Difference& diff);
// The band of a group's runs in each bin, of one metric or of one series.
std::vector<Band> BandsOf(const std::vector<std::vector<double>>& runs);

}  // namespace sonde::cli
