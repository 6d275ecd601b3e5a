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

#include <cstdint>
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

// What the parts of a profile, of which there is one at least, and its blocks in `db` say together.
Profile WholeProfile(leveldb::DB& db, const std::string& key, std::vector<Part> parts);
// The blocks that `db` has of a profile.
Result<uint64_t> CountBlocks(leveldb::DB& db, const std::string& key);

// Deletes what killed writers and ingests left half made or half deleted.
void SweepLive(const ArchivePaths& archive);

}  // namespace sonde
