// Moves a finished or abandoned step from live/ into db/.
//
// The order is this, so that a kill at any point loses nothing and counts nothing twice: copy the
// blocks; write description, profile and indexes with the last batch and sync; open the database
// once more, as the next process does, read everything back there and compare; look whether db/ and
// the live directory are still ours to change, which a suspended process may find to be another's;
// only then rename and delete the live directory. Doing it again gives the same result. Several
// steps are read back together, since opening the database takes longer than reading a step.
//
// A step is begun only if there is room for it and for opening the database after a failure:
// otherwise it would take the last room on the disk from a prune, which needs some itself.
//
// A step may have several live directories: its head's and those of acting heads (model/parts.h).
// Each part's own record stays in db/, and the profile is made anew from all parts whenever one
// comes, so the order does not matter. The notes name what cannot be read, and its directory is
// kept as NAME.corrupt.
//
// Thread safety: none; the caller holds the archive's lock.
#pragma once

#include <leveldb/db.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/status.h"
#include "core/unique_fd.h"
#include "profiles/disk/archive_dir.h"
#include "profiles/disk/writable_db.h"
#include "profiles/live/live_steps.h"
#include "profiles/model/parts.h"
#include "profiles/model/profile.h"

namespace sonde {

// A step that was copied and whose live directory is not deleted yet.
struct CopiedStep {
  std::string name;
  LivePaths paths{""};
  std::string taken_from;  // as in LiveStep
  UniqueFd directory;      // open, so that no other one can be taken for it
  bool damaged = false;    // some of it could not be read
};

class Intake {
 public:
  Intake(WritableDb& db, const ArchivePaths& archive) : db_(db), archive_(archive) {}
  // Copies the step. kBusy if its writer holds it: a writer that has let go never takes it again,
  // so this takes no lock, and a step that is being ingested does not look as if it ran. kIo and
  // the like if it cannot be written, see WritableDb::failure.
  Status Add(const LiveStep& step);
  // Whether the added steps should be settled before more are added.
  bool full() const;
  // How many steps were added and are not settled.
  size_t waiting() const { return copied_.size(); }
  // Reads back the added steps and deletes them in live/, also after a failure of the database. If
  // a record is missing, all these steps stay in live/, and the database is stopped.
  Status Settle();
  // How many steps were deleted in live/.
  uint64_t settled() const { return settled_; }

 private:
  Status ReadBack(const WrittenRecords& records) const;

  WritableDb& db_;
  const ArchivePaths& archive_;
  std::vector<CopiedStep> copied_;
  WrittenRecords records_;  // all records that db/ must have of these steps
  uint64_t settled_ = 0;
};

// The profile that its parts, at least one, and its blocks in `db` make together.
Profile WholeProfile(leveldb::DB& db, const std::string& key, std::vector<Part> parts);
// The number of blocks that `db` has of a profile.
Result<uint64_t> CountBlocks(leveldb::DB& db, const std::string& key);

}  // namespace sonde
