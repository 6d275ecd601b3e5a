// Deletes what processes that were killed have left in an archive and nobody has an interest in.
//
// Thread safety: a function without state; the caller holds the archive's lock.
#pragma once

#include "core/time.h"
#include "profiles/disk/archive_dir.h"

namespace sonde {

// Deletes the half made or half deleted directories that killed writers and ingests left in live/,
// and what NFS keeps in db/ of deleted files. `now`: by the clock of the archive's file system.
void SweepArchive(const ArchivePaths& archive, Nanos now);
// Now. Nothing is deleted if the file system does not tell its time.
void SweepArchive(const ArchivePaths& archive);

}  // namespace sonde
