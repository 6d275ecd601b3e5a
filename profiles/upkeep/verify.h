// Whether everything in an archive can be read: every checksum of LevelDB, every block decoded,
// every block with its schema, every profile with its descriptions, as many blocks as were stored,
// and all of its entries in the indexes, and none that lead nowhere; of live/ what waits to be
// ingested. Nothing is changed and no lock is needed.
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
  uint64_t running = 0;  // these are not looked into
  uint64_t foreign = 0;  // blocks and schemas that only another version of Sonde can check
  uint64_t problem_count = 0;
  std::vector<Problem> problems;     // the first kMaxProblems
  std::vector<std::string> damaged;  // what earlier ingests and repairs have put aside

  bool ok() const { return problem_count == 0; }
};

// Problems are no failure; not being able to look is. `progress` in bytes; it is not stopped.
Result<VerifyReport> VerifyArchive(const std::string& root, const ArchiveProgress& progress);
std::string VerifyToJson(const VerifyReport& report);

// Names of what is kept of earlier damage, below the archive: live/NAME.corrupt, db.damaged-N.
std::vector<std::string> KeptDamage(const std::string& root);

}  // namespace sonde
