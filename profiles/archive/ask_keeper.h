// Asking whoever keeps an archive (archive/keeper.h) to do what only one process can: to change
// db/, which it has open.
//
// All of these give kNotFound if nobody on this host keeps it, and then nothing was done: the
// caller opens db/ itself. Work that takes long tells how far it is; it goes on at the keeper even
// if who asked does not wait for the end.
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

// Has it take in what waits in live/; how many steps. At most `wait` for the answer, 0: none is
// waited for.
Result<uint64_t> AskToIngest(const std::string& root, Nanos wait);
// Has it change a profile's tags; how many it has then.
Result<uint64_t> AskToTag(const std::string& root, const std::string& key, const TagChange& change);

// Changes them where db/ is open, by its `owner` here, if there is one, or at whoever keeps the
// archive; gives what there is then.
Result<UserTags> TagWhereItIsOpen(const Archive& archive, OwnedArchive* owner,
                                  const std::string& key, const TagChange& change);

// Told of work that comes first, by its word: "compact". Once for each, however long it takes.
using OnWait = std::function<void(const std::string& work)>;

// The rest as the functions do it that have their reports: `progress` sees what they would tell.
Result<PruneReport> AskToPrune(const std::string& root, const Retention& limits,
                               const ArchiveProgress& progress, const OnWait& waits = nullptr);
Status AskToCompact(const std::string& root, const ArchiveProgress& progress,
                    const OnWait& waits = nullptr);
Result<RepairReport> AskToRepair(const std::string& root, const ArchiveProgress& progress,
                                 const OnWait& waits = nullptr);
// The file is opened here, so that the keeper needs no right to it.
Result<Imported> AskToImport(const std::string& root, const std::string& path,
                             const ArchiveProgress& progress, const OnWait& waits = nullptr);

}  // namespace sonde
