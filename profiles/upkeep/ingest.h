// Moving a finished or abandoned step from live/ into db/.
//
// In this order, so that a kill at any point loses nothing and counts nothing twice: copy the
// blocks; write description, profile and indexes with the last batch and sync; open the database
// once more, as whoever comes next does, read all of it back there and compare; only then delete
// the live directory, renaming it first. Done again it does the same. Some steps are read back
// together, since to open it takes longer than to read a step.
//
// A step is begun only if there is room for it and for opening the database after a failure: else
// the last room on the disk would be taken from a prune, which needs some itself.
//
// A step may have several live directories: its head's and those of acting heads (model/parts.h).
// Each part's own record stays in db, and the profile is made anew from all of them whenever one
// comes, so that the order does not matter. What cannot be read is named in the notes, and its
// directory is kept as NAME.corrupt.
//
// Thread safety: none; the caller holds the archive's lock.
#pragma once

#include <leveldb/db.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/status.h"
#include "profiles/disk/archive_dir.h"
#include "profiles/disk/writable_db.h"
#include "profiles/live/live_steps.h"
#include "profiles/model/parts.h"
#include "profiles/model/profile.h"

namespace sonde {

// A step that was copied and is not put away yet.
struct CopiedStep {
  std::string name;
  LivePaths paths{""};
  bool damaged = false;  // not all of it could be read
};

class Intake {
 public:
  Intake(WritableDb& db, const ArchivePaths& archive) : db_(db), archive_(archive) {}
  // Copies it. kBusy if its writer holds it: who does not any more never does again, so nobody has
  // to be kept out, and to who looks a step that is taken in does not seem to run. kIo and its like
  // if it cannot be written, see WritableDb::failure.
  Status Add(const LiveStep& step);
  // Whether what was added should be settled before more comes.
  bool full() const;
  // How many were added and are not settled.
  size_t waiting() const { return copied_.size(); }
  // Reads back what was added and deletes it in live/, also after a failure of the database. If
  // something is not there all of it stays in live/, and the database is stopped.
  Status Settle();
  // How many steps are deleted in live/.
  uint64_t settled() const { return settled_; }

 private:
  Status ReadBack(const WrittenRecords& records) const;

  WritableDb& db_;
  const ArchivePaths& archive_;
  std::vector<CopiedStep> copied_;
  WrittenRecords records_;  // all that db/ has to have of these
  uint64_t settled_ = 0;
};

// What the parts of a profile, of which there is one at least, and its blocks in `db` say together.
Profile WholeProfile(leveldb::DB& db, const std::string& key, std::vector<Part> parts);
// The blocks that `db` has of a profile.
Result<uint64_t> CountBlocks(leveldb::DB& db, const std::string& key);

// Deletes what killed writers and ingests left half made or half deleted.
void SweepLive(const ArchivePaths& archive);

}  // namespace sonde
