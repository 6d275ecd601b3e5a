// Moving a finished or abandoned step from live/ into db/.
//
// In this order, so that a kill at any point loses nothing and counts nothing twice: copy the
// blocks; write description, profile and indexes with the last batch and sync; read everything back
// and compare; only then delete the live directory, renaming it first. Done again it does the same.
//
// A step may have several live directories: its head's and those of acting heads (parts.h). Each
// part's own record stays in db, and the profile is made anew from all of them whenever one comes,
// so that the order does not matter. What cannot be read is named in the notes, and its directory
// is kept as NAME.corrupt.
//
// Thread safety: none; the caller holds the archive's lock.
#pragma once

#include <leveldb/db.h>
#include <leveldb/write_batch.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/status.h"
#include "profiles/archive_dir.h"
#include "profiles/live_steps.h"
#include "profiles/parts.h"
#include "profiles/profile.h"

namespace sonde {

// kBusy if its writer holds it.
Status IngestStep(leveldb::DB& db, const ArchivePaths& archive, const LiveStep& step);

// The entries of a profile in the indexes.
void AddIndexes(const Profile& profile, leveldb::WriteBatch& batch);
// What the parts of a profile, of which there is one at least, and its blocks in `db` say together.
Profile WholeProfile(leveldb::DB& db, const std::string& key, std::vector<Part> parts);
// The blocks that `db` has of a profile.
Result<uint64_t> CountBlocks(leveldb::DB& db, const std::string& key);

// Deletes what killed writers and ingests left half made or half deleted.
void SweepLive(const ArchivePaths& archive);

// kUnsupported if db/ is of a newer format, by the plain file beside it: to ask LevelDB is to
// change its files.
Status CheckArchiveFormat(const ArchivePaths& archive);

// Opens db/ for writing, making it if needed. kCorrupt if it is damaged, kUnsupported if it is of a
// newer format.
Result<std::unique_ptr<leveldb::DB>> OpenDb(const ArchivePaths& archive);
// A database like db/, somewhere.
Result<std::unique_ptr<leveldb::DB>> CreateDb(const std::string& path);

}  // namespace sonde
