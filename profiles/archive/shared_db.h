// db/ as the readers of an archive and its owner share it in one process. While the owner
// (db_owner.h) has db/ open, readers read through that; else through a snapshot, taken anew if
// something was written since.
//
// A reader keeps an OpenedDb for as long as its work lasts; the files it reads stay on the disk.
//
// Thread safety: any thread; only the owner calls Open and Close.
#pragma once

#include <leveldb/db.h>
#include <sys/types.h>

#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "profiles/disk/archive_dir.h"
#include "profiles/disk/damage.h"
#include "profiles/disk/read_only_db.h"
#include "profiles/disk/writable_db.h"
#include "profiles/records/kept_parsed.h"

namespace sonde {

// db/, open for writing or seen through a snapshot.
struct OpenedDb {
  struct End {
    std::promise<void> come;
    ~End() { come.set_value(); }
  };
  mutable End end;                       // destroyed after `writable`
  std::unique_ptr<WritableDb> writable;  // nullptr: this is the snapshot
  ReadOnlyDb snapshot;
  leveldb::DB* get() const { return writable ? writable.get() : snapshot.db.get(); }
};

class SharedDb {
 public:
  using Opened = std::shared_ptr<const OpenedDb>;

  explicit SharedDb(std::string root) : paths(std::move(root)) {}

  const ArchivePaths paths;
  mutable Damage damage;     // what readers have found in the present db/
  mutable KeptRecords kept;  // what they have parsed

  // For readers: db/ as it is now; nullptr if there is none. Fails if that cannot be told.
  Result<Opened> Refreshed() const;
  // The db/ that was opened last, if it can still be read.
  Opened Known() const;

  // Called by the holder of the lock of db/: all readers are given `db` from now on.
  Opened Open(std::unique_ptr<WritableDb> db);
  // Gives that database to no new reader, and closes it when its present readers have ended.
  void Close();

 private:
  Opened Current() const;
  // A repair puts another directory in place of db/: what was damaged there counts no more.
  void LookForRepair() const;

  mutable std::mutex mutex_;  // guards the members below
  mutable Opened db_;         // nullptr: no reader has looked yet, or there is no db/
  mutable ino_t inode_ = 0;   // of db/; 0: nobody has looked yet
};

}  // namespace sonde
