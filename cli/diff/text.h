// What `sonde diff` prints.
//
// Thread safety: functions without state.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"
#include "profiles/compare/difference.h"

namespace sonde::cli {

struct DiffTextOptions {
  bool all = false;                // also differences within noise, and all series
  std::vector<std::string> plots;  // metrics
};
std::string DiffToText(const Difference& diff, const DiffTextOptions& options,
                       const Environment& env);

}  // namespace sonde::cli
