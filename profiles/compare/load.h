// Finds and reads the runs that `sonde diff` and the page that compares put beside each other.
//
// Thread safety: functions without state.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "profiles/archive/archive.h"
#include "profiles/compare/difference.h"

namespace sonde {

inline constexpr size_t kMostGroups = 8;
inline constexpr size_t kMostRuns = 200;  // of all groups

struct DiffQuestion {
  std::vector<std::string> groups;  // each is a run, as in 4711.0, or several between commas
  // With this text the first group is the last runs whose command line or name has it; if no other
  // group is named, the second group is the newest of these runs.
  std::string command;
  size_t last = 10;
  std::string phase;  // by which the runs are aligned; "": their starts
};

// "start" or "phase:NAME"; gives the phase.
Result<std::string> ParseAlign(std::string_view text);

using OnStep = std::function<void(uint64_t done, uint64_t total)>;
// kInvalid for a question that names too few groups or too many, kNotFound for a run that does not
// exist or has not ended.
Result<Difference> LoadDifference(const Archive& archive, const DiffQuestion& question,
                                  const OnStep& on_step);

}  // namespace sonde
