// Finding and reading what `sonde diff`, and the page that compares, put beside each other.
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
  std::vector<std::string> groups;  // each a run, as in 4711.0, or several between commas
  // With it the first group is of the last runs whose command line or name has this text, and where
  // no other is named, the second of the newest of them.
  std::string command;
  size_t last = 10;
  std::string phase;  // that the runs are aligned by; "": their starts
};

// "start" or "phase:NAME"; gives the phase.
Result<std::string> ParseAlign(std::string_view text);

using OnStep = std::function<void(uint64_t done, uint64_t total)>;
// kInvalid for a question that names too few groups or too many, kNotFound for a run that is not
// there or has not ended.
Result<Difference> LoadDifference(const Archive& archive, const DiffQuestion& question,
                                  const OnStep& on_step);

}  // namespace sonde
