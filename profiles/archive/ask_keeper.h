// Asks the process that keeps an archive (archive/keeper.h) to change db/: only that process can,
// because it has db/ open.
//
// All of these give kNotFound if no process on this host keeps the archive. Then nothing was done,
// and the caller opens db/ itself. Long work reports its progress, and the keeper goes on with it
// even if the caller does not wait for the end.
//
// Thread safety: functions without state.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "core/status.h"
#include "core/time.h"
#include "profiles/archive/archive.h"
#include "profiles/archive/owned_archive.h"
#include "profiles/upkeep/import.h"
#include "profiles/upkeep/repair.h"
#include "profiles/upkeep/retention.h"

namespace sonde {

// The keeper takes in the steps that wait in live/; gives how many. Waits at most `wait` for the
// answer; 0: does not wait for one.
Result<uint64_t> AskToIngest(const std::string& root, Nanos wait);
// The keeper changes a profile's tags; gives how many tags the profile has then.
Result<uint64_t> AskToTag(const std::string& root, const std::string& key, const TagChange& change);

// Changes the tags where db/ is open: through `owner` if this process has one, else through the
// process that keeps the archive. Gives the tags that the profile has then.
Result<UserTags> TagWhereItIsOpen(const Archive& archive, OwnedArchive* owner,
                                  const std::string& key, const TagChange& change);

// Called with the name of work that comes first: "compact". Once for each, however long it takes.
using OnWait = std::function<void(const std::string& work)>;

// These give the reports of the functions that do the work; `progress` sees that work's progress.
Result<PruneReport> AskToPrune(const std::string& root, const Retention& limits,
                               const ArchiveProgress& progress, const OnWait& waits = nullptr);
Status AskToCompact(const std::string& root, const ArchiveProgress& progress,
                    const OnWait& waits = nullptr);
Result<RepairReport> AskToRepair(const std::string& root, const ArchiveProgress& progress,
                                 const OnWait& waits = nullptr);
// This process opens the file, so the keeper needs no right to it.
Result<Imported> AskToImport(const std::string& root, const std::string& path,
                             const ArchiveProgress& progress, const OnWait& waits = nullptr);

}  // namespace sonde
