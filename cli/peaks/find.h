// Which files have the peaks that a command needs.
//
// Thread safety: functions without state.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"
#include "insight/steps/peaks_file.h"

namespace sonde::cli::peaks {

using insight::NodePeaks;

struct CacheFiles {
  std::string site;  // "": the site has none
  std::string user;
  // Where both have a type, the last one counts.
  std::vector<std::string> All() const;
};
Result<CacheFiles> FilesOf(const Environment& env);

// The user's, and then the site's, which count where both have a type. With `file` those of that
// file alone.
Result<std::vector<NodePeaks>> KnownPeaks(const Environment& env, const std::string& file);

}  // namespace sonde::cli::peaks
