// Opens and makes the database of finished steps, db/.
//
// Thread safety: functions without state; the caller holds the archive's lock.
#pragma once

#include <leveldb/db.h>

#include <memory>
#include <string>

#include "core/status.h"
#include "profiles/disk/archive_dir.h"
#include "profiles/disk/writable_db.h"

namespace sonde {

// What is written to a database at a time, so that no memory holds all of it.
inline constexpr size_t kBatchBytes = size_t{1} << 20;

// kUnsupported if db/ is of a newer format, by the plain file beside it: opening it with LevelDB
// would change its files.
Status CheckArchiveFormat(const ArchivePaths& archive);
// The same by the database's own record, of db/ or a live step; `path` is for messages.
Status CheckDbFormat(leveldb::DB& db, const std::string& path);

// Opens db/ for writing, making it if needed. kCorrupt if it is damaged, kUnsupported if it is of a
// newer format. `fence`: of the lock under which it is changed; nullptr if no other host has it.
Result<std::unique_ptr<WritableDb>> OpenDb(const ArchivePaths& archive,
                                           std::shared_ptr<Fence> fence = nullptr);
// Makes a database like db/ at another path.
Result<std::unique_ptr<WritableDb>> CreateDb(const std::string& path, std::shared_ptr<Fence> fence);

}  // namespace sonde
