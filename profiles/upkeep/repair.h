// Makes db/ anew from the readable records of a damaged one.
//
// Each record that LevelDB can read passes its own checks and then CheckRecord, and only whole ones
// are copied into a new database: blocks, schemas, descriptions, profiles and parts. If the
// database's files do not fit together any more, LevelDB's RepairDB is used, on a copy in memory.
// Indexes are made anew from the profiles; a lost profile is made anew from its parts or blocks. A
// profile that lost something says so in its notes, and the report names lost profiles.
//
// The damaged database is not changed: it stays as db.damaged-N until DiscardDamage. The new one
// takes its place in one step, so a kill at any point leaves one of the two; the next process that
// opens db/ does the rest of the work (FinishRepair).
//
// Thread safety: functions without state.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "core/time.h"
#include "profiles/disk/archive_dir.h"
#include "profiles/disk/claim.h"
#include "profiles/disk/progress.h"

namespace sonde {

// Prefix of the names of damaged databases that repairs have kept.
inline constexpr std::string_view kDamagedPrefix = "db.damaged-";

struct RepairReport {
  struct Loss {
    std::string profile;  // its key
    std::string what;
  };
  uint64_t profiles = 0;  // number that the archive has now
  uint64_t blocks = 0;
  std::string damage;    // "" or the damage that LevelDB found
  uint64_t dropped = 0;  // records that failed their checks
  std::vector<Loss> losses;
  std::string kept;  // where the damaged database is now
};

// kBusy if another process has db/ open for writing; waits up to `wait`. `progress` in bytes.
Result<RepairReport> RepairArchive(const std::string& root, Nanos wait,
                                   const ArchiveProgress& progress);
// The same for the holder of the archive's lock, with db/ closed.
Result<RepairReport> RepairHeld(const ArchivePaths& paths, const std::shared_ptr<Fence>& fence,
                                const ArchiveProgress& progress);
std::string RepairToJson(const RepairReport& report);
Result<RepairReport> RepairFromJson(std::string_view json);

// Deletes the damage that KeptDamage names, and gives the names.
Result<std::vector<std::string>> DiscardDamage(const std::string& root);

// Whether db/ is missing until FinishRepair puts it in place.
Result<bool> IsRepairCutOff(const ArchivePaths& paths);
// After a repair that was killed: puts the new database in place if the kill came between the two
// steps of a file system that cannot exchange directories; keeps the damaged one if the kill came
// right after the exchange; deletes the new one if it came before. The caller holds the archive's
// lock; `fence`: of that lock, looked at before each change, or nullptr.
Status FinishRepair(const ArchivePaths& paths, Fence* fence);

}  // namespace sonde
