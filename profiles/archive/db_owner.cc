#include "profiles/archive/db_owner.h"

#include "core/log.h"
#include "profiles/disk/archive_dir.h"
#include "profiles/disk/room.h"
#include "profiles/upkeep/open_db.h"

namespace sonde {

Result<std::unique_ptr<DbOwner>> DbOwner::Take(std::shared_ptr<SharedDb> db, Nanos wait) {
  std::unique_ptr<DbOwner> owner(new DbOwner(std::move(db)));
  SONDE_RETURN_IF_ERROR(owner->Lock(wait));
  SONDE_RETURN_IF_ERROR(owner->Open());
  return owner;
}

Status DbOwner::Lock(Nanos wait) {
  auto lock = ArchiveLock::Acquire(paths(), wait);
  // If others can write, they may have deleted our records by right.
  if (lock.status().code() == Code::kBusy) unchecked_ = {};
  if (!lock.ok()) return lock.status();
  if (!unchecked_.empty() && !left_.HasSameTables(DbState::OfTables(paths().db()))) unchecked_ = {};
  lock_.emplace(*std::move(lock));
  return {};
}

Status DbOwner::Open() {
  auto opened = OpenDb(paths(), lock_->claim());
  // Another host has the database, and may delete our records by right.
  if (opened.status().code() == Code::kBusy) unchecked_ = {};
  const auto fails = [&](Status status) {
    if (opened.ok()) opened->reset();
    left_ = DbState::OfTables(paths().db());
    lock_.reset();
    return status;
  };
  if (!opened.ok()) return fails(opened.status());
  const Status found = unchecked_.FindIn(**opened).Within("open " + paths().db() + " again");
  const bool lost = found.code() == Code::kCorrupt;
  if (!found.ok() && !lost) return fails(found);
  // A lost record will not be there at the next look either.
  unchecked_ = {};
  if (lost) log::Error("archive {}: {}", paths().root, found.message());
  const auto now = db_->Open(*std::move(opened));
  const std::lock_guard guard(mutex_);
  mine_ = now;
  closed_by_ = {};
  return found;
}

void DbOwner::Close() {
  {
    const std::lock_guard guard(mutex_);
    if (mine_.expired()) return;
    mine_.reset();
  }
  db_->Close();
}

Status DbOwner::OpenAgain() {
  Status status = Open();
  if (!IsOpen()) set_closed_by(status);
  return status;
}

SharedDb::Opened DbOwner::Mine() const {
  const std::lock_guard guard(mutex_);
  return mine_.lock();
}

Status DbOwner::closed_by() const {
  const std::lock_guard guard(mutex_);
  return closed_by_;
}

void DbOwner::set_closed_by(Status why) {
  const std::lock_guard guard(mutex_);
  closed_by_ = std::move(why);
}

bool DbOwner::NeedsRecovery() const {
  const auto open = Mine();
  return !closed_by().ok() || (open && !open->writable->failure().ok());
}

bool DbOwner::ClosedByFailure() const {
  const Status why = closed_by();
  return !why.ok() && why.code() != Code::kBusy;
}

Status DbOwner::Recover() {
  {
    const auto open = Mine();
    if (!open || open->writable->failure().ok()) return {};
    log::Warning("archive {}: {}", paths().root, open->writable->failure().message());
    unchecked_ = open->writable->TakeWritten();
  }
  Close();
  Status status = OpenAgain();
  if (IsOpen()) return status;
  log::Error("archive {}: it is closed until it can be written again: {}", paths().root,
             status.message());
  return status;
}

Result<SharedDb::Opened> DbOwner::Writable() {
  SONDE_RETURN_IF_ERROR(Recover());
  if (!NeedsRecovery()) return Now();
  // Each try costs LevelDB a file or two.
  const Status room = ClosedByFailure() ? CheckRoom(paths(), RoomToOpen(paths())) : Status();
  Status status = WantsRoom(room) ? room : Lock(0);
  if (status.ok()) status = Open();
  if (!IsOpen()) {
    set_closed_by(status);
    return status;
  }
  log::Info("archive {}: it can be written again", paths().root);
  SONDE_RETURN_IF_ERROR(status);
  return Now();
}

Result<SharedDb::Opened> DbOwner::Now() const {
  if (auto open = Mine()) {
    open->writable->BeginChange();
    return open;
  }
  const Status why = closed_by();
  if (!why.ok()) return why;
  return Status(Code::kBusy, "the archive is closed just now; try again");
}

void DbOwner::Touch() {
  const Status touched = lock_ ? lock_->Touch() : Status();
  const auto open = touched.ok() ? nullptr : Mine();
  if (open) open->writable->Stop(touched);
}

}  // namespace sonde
