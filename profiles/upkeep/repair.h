// Makes db/ anew from what can be read of a damaged one.
//
// What LevelDB can read goes through its own checks and then through CheckRecord, and only what is
// whole is copied into a new database: blocks, schemas, descriptions, profiles and parts. LevelDB's
// RepairDB is used, on a copy in memory, where its files do not fit together any more. Indexes are
// made anew from the profiles; a profile that is gone is made anew from its parts or its blocks. A
// profile that has lost something says so in its notes, and the report names those that are gone.
//
// The damaged database is not changed: it stays beside as db.damaged-N until DiscardDamage. The new
// one takes its place in one step, so that a kill at any point leaves one of the two; whoever opens
// db/ next does what was left to do (FinishRepair).
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
#include "profiles/disk/progress.h"

namespace sonde {

// What repairs have put aside, and what one is making.
inline constexpr std::string_view kDamagedPrefix = "db.damaged-";

struct RepairReport {
  struct Loss {
    std::string profile;  // its key
    std::string what;
  };
  uint64_t profiles = 0;  // that the archive has now
  uint64_t blocks = 0;
  std::string damage;    // "" or what LevelDB found wrong
  uint64_t dropped = 0;  // records that failed their checks
  std::vector<Loss> losses;
  std::string kept;  // where the damaged database is
};

// kBusy if somebody has db/ open for writing; waits up to `wait` for them. `progress` in bytes.
Result<RepairReport> RepairArchive(const std::string& root, Nanos wait,
                                   const ArchiveProgress& progress);
// The same by whoever holds the archive's lock, with db/ closed.
Result<RepairReport> RepairHeld(const ArchivePaths& paths, const ArchiveProgress& progress);
std::string RepairToJson(const RepairReport& report);
Result<RepairReport> RepairFromJson(std::string_view json);

// Deletes what KeptDamage names, and gives their names.
Result<std::vector<std::string>> DiscardDamage(const std::string& root);

// Whether there is no db/ until FinishRepair has put it there.
bool IsRepairCutOff(const ArchivePaths& paths);
// After a repair that was killed: puts the new database in place where the kill came between the
// two steps of a file system that cannot exchange directories, keeps the damaged one where it came
// right after the exchange, and deletes the new one where it came before. Called with the archive's
// lock held.
Status FinishRepair(const ArchivePaths& paths);

}  // namespace sonde
