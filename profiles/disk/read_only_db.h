// A LevelDB that is only read, through an overlay (leveldb_env.h): as it was at one moment, whoever
// writes to it meanwhile.
//
// A writer adds a record to the manifest before it deletes a log or a table that the manifest named
// until then. So what was opened is whole if the manifest is the same before and after: no log that
// it names can have been gone when it was looked for. Otherwise it is opened again. Tables are
// opened later, as they are needed; a share in the writer's lock (file_lock.h) keeps those that a
// compaction replaces until then. Without one, which file systems without locks and writers of
// other hosts may not see, reading a table that is gone fails with kIo: never is a record only
// missing.
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
#include "profiles/disk/leveldb_env.h"

namespace sonde {

// What tells whether a database was written to since.
struct DbState {
  std::string manifest;  // its name; "": there is no database
  uint64_t manifest_size = 0;
  ino_t manifest_inode = 0;
  std::map<std::string, uint64_t> logs;  // their sizes

  static DbState Of(const std::string& path);
  // Of the manifest alone, which tells whether the tables are the same.
  static DbState OfTables(const std::string& path);
  bool HasSameTables(const DbState& other) const;
  bool operator==(const DbState&) const = default;
};

struct ReadOnlyDb {
  FileShare share;  // in the lock that was named
  std::unique_ptr<OverlayEnv> env;
  std::unique_ptr<leveldb::DB> db;  // goes before its environment
  std::string damage;               // "" or what LevelDB found wrong; then some of it is missing
  DbState state;                    // not newer than what was read

  // `lock`: the writer's; "": there is none, or the caller has it or a share in it.
  static Result<ReadOnlyDb> Open(const std::string& path, const std::string& lock = "");
};

}  // namespace sonde
