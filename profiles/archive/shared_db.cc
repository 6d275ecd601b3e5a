#include "profiles/archive/shared_db.h"

#include <sys/stat.h>

#include "profiles/disk/file_lock.h"

namespace sonde {
namespace {

// A snapshot, and the share that keeps its tables on the disk.
SharedDb::Opened WithShare(SharedDb::Opened snapshot, FileShare share) {
  struct Both {
    SharedDb::Opened snapshot;
    FileShare share;
  };
  auto both = std::make_shared<const Both>(Both{std::move(snapshot), std::move(share)});
  return {both, both->snapshot.get()};
}

}  // namespace

SharedDb::Opened SharedDb::Current() const {
  const std::lock_guard guard(mutex_);
  return db_;
}

void SharedDb::LookForRepair() const {
  struct stat info;
  if (::stat(paths.db().c_str(), &info) != 0) return;
  if (inode_ != 0 && inode_ != info.st_ino) damage.Forget();
  inode_ = info.st_ino;
}

Result<SharedDb::Opened> SharedDb::Refreshed() const {
  auto current = Current();
  if (current && current->writable) return current;
  auto share = FileShare::Take(paths.db_lock());
  if (current && current->snapshot.state == DbState::Of(paths.db())) {
    return WithShare(std::move(current), std::move(share));
  }
  auto taken = ReadOnlyDb::Open(paths.db());
  if (!taken.ok() && taken.status().code() == Code::kNotFound) return current;
  if (!taken.ok()) return taken.status();
  auto fresh = std::make_shared<OpenedDb>();
  fresh->snapshot = *std::move(taken);
  const std::lock_guard guard(mutex_);
  // Meanwhile the owner may have opened it.
  if (db_ && db_->writable) return db_;
  LookForRepair();
  db_ = std::move(fresh);
  return WithShare(db_, std::move(share));
}

SharedDb::Opened SharedDb::Known() const {
  auto current = Current();
  if (!current || current->writable) return current;
  auto share = FileShare::Take(paths.db_lock());
  const bool same = current->snapshot.state.HasSameTables(DbState::OfTables(paths.db()));
  return same ? WithShare(std::move(current), std::move(share)) : nullptr;
}

SharedDb::Opened SharedDb::Open(std::unique_ptr<WritableDb> db) {
  auto opened = std::make_shared<OpenedDb>();
  opened->writable = std::move(db);
  const std::lock_guard guard(mutex_);
  LookForRepair();
  db_ = std::move(opened);
  return db_;
}

void SharedDb::Close() {
  Opened last;
  {
    const std::lock_guard guard(mutex_);
    last = std::move(db_);
    db_ = nullptr;
  }
  const std::future<void> end = last->end.come.get_future();
  last.reset();
  end.wait();
}

}  // namespace sonde
