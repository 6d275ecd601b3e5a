// A LevelDB that is only read, through an overlay (overlay_env.h): the database as it was at one
// moment, even if another process writes to it meanwhile.
//
// A writer adds a record to the manifest before it deletes a log or a table that the manifest named
// until then. So the opened database is whole if the manifest is the same before and after: every
// log that it names was there when it was read. Otherwise the database is opened again. Tables are
// opened later, as they are needed; a share in the writer's lock (file_lock.h) keeps the tables
// that a compaction replaces until then. Without a share (file systems without locks; writers on
// other hosts may not see it), reading a table that is gone fails with kIo: a record is never
// silently missing.
//
// Thread safety: a value; its database as LevelDB, from any thread.
#pragma once

#include <leveldb/db.h>
#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "core/status.h"
#include "profiles/disk/file_lock.h"
#include "profiles/disk/overlay_env.h"

namespace sonde {

// The state that shows whether a database was written to since.
struct DbState {
  std::string manifest;  // its name; "": there is no database
  uint64_t manifest_size = 0;
  ino_t manifest_inode = 0;
  std::map<std::string, uint64_t> logs;  // their sizes

  static DbState Of(const std::string& path);
  // The state of the manifest alone, which shows whether the tables are the same.
  static DbState OfTables(const std::string& path);
  bool HasSameTables(const DbState& other) const;
  bool operator==(const DbState&) const = default;
};

struct ReadOnlyDb {
  FileShare share;  // in the lock at the path `lock`
  std::unique_ptr<OverlayEnv> env;
  std::unique_ptr<leveldb::DB> db;  // destroyed before its environment
  std::string damage;               // "" or damage that LevelDB found; then records are missing
  DbState state;                    // not newer than the records that were read
  Status unread;                    // of a read that failed while it was opened

  // ok: all that was wanted so far was read, or is damaged. Else something is missing that may be
  // there (read_failures.h), and nobody may change anything for good as if it were not.
  Status ReadFailure() const;

  // Fails if the process cannot read now; where the disk fails, what it gives is shown, with the
  // error as the damage. `lock`: the writer's; "": there is none, or the caller has the lock or a
  // share in it.
  static Result<ReadOnlyDb> Open(const std::string& path, const std::string& lock = "");
};

}  // namespace sonde
