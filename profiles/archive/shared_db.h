// db/ as the readers of an archive and its owner share it in one process: while the owner
// (db_owner.h) has it open, it is read through that, else through a snapshot, taken anew if
// something was written since.
//
// Who reads keeps an OpenedDb for as long as the work lasts; what it shows stays on the disk.
//
// Thread safety: any thread; Open and Close are the owner's.
#pragma once

#include <leveldb/db.h>

#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "profiles/disk/archive_dir.h"
#include "profiles/disk/read_only_db.h"
#include "profiles/disk/writable_db.h"

namespace sonde {

// db/, open for writing or seen through a snapshot.
struct OpenedDb {
  struct End {
    std::promise<void> come;
    ~End() { come.set_value(); }
  };
  mutable End end;                       // after `writable` is closed
  std::unique_ptr<WritableDb> writable;  // nullptr: it is the snapshot
  ReadOnlyDb snapshot;
  leveldb::DB* get() const { return writable ? writable.get() : snapshot.db.get(); }
};

class SharedDb {
 public:
  using Opened = std::shared_ptr<const OpenedDb>;

  explicit SharedDb(std::string root) : paths(std::move(root)) {}

  const ArchivePaths paths;

  // For who reads: as it is now; nullptr if there is none.
  Opened Refreshed() const;
  // The same as it was when it was last looked at, if that can still be read.
  Opened Known() const;

  // Of who has the lock of db/: what all who read are given from now on.
  Opened Open(std::unique_ptr<WritableDb> db);
  // Takes that from those who read from now on, and closes it when those have ended who do by now.
  void Close();

 private:
  Opened Current() const;

  mutable std::mutex mutex_;
  mutable Opened db_;  // nullptr: nobody has looked, or there is none
};

}  // namespace sonde
