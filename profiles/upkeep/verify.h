// Checks whether everything in an archive can be read: every checksum of LevelDB, every block,
// every block's schema, every profile with its descriptions, the stored number of blocks, all index
// entries of each profile, and that no entry leads nowhere; in live/ the steps that wait to be
// ingested. It changes nothing and needs no lock.
//
// Thread safety: functions without state.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/status.h"
#include "profiles/disk/progress.h"

namespace sonde {

struct VerifyReport {
  static constexpr size_t kMaxProblems = 1000;
  struct Problem {
    std::string profile;  // its key; "": the archive's
    std::string what;
  };

  uint64_t profiles = 0;
  uint64_t blocks = 0;
  uint64_t block_bytes = 0;
  uint64_t schemas = 0;
  uint64_t index_entries = 0;
  uint64_t live = 0;     // steps that wait in live/
  uint64_t running = 0;  // steps that run, not checked
  uint64_t foreign = 0;  // blocks and schemas that only another version of Sonde can check
  uint64_t problem_count = 0;
  std::vector<Problem> problems;     // the first kMaxProblems
  std::vector<std::string> damaged;  // damage that earlier ingests and repairs have put aside

  bool ok() const { return problem_count == 0; }
};

// Problems are no failure; being unable to look is. `progress` in bytes; it cannot stop the work.
Result<VerifyReport> VerifyArchive(const std::string& root, const ArchiveProgress& progress);
std::string VerifyToJson(const VerifyReport& report);

// Names of kept damage, below the archive: live/NAME.corrupt, db.damaged-N.
std::vector<std::string> KeptDamage(const std::string& root);

}  // namespace sonde
