// db/ for its owner: either open for writing, with its lock, or closed by a failure until the next
// change.
//
// After a failure the owner closes db/, opens it anew (Recover) and checks that every acknowledged
// record is there. The caller of the change is told of a loss; later changes go on. If db/ cannot
// be opened, the owner gives its lock away too, so that another program can make room, and tries
// again with the next change (Writable): kBusy while that other program has the lock.
//
// Thread safety: one thread at a time; IsOpen, Now, NeedsRecovery and ClosedByFailure from any.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>

#include "core/status.h"
#include "core/time.h"
#include "profiles/archive/shared_db.h"
#include "profiles/disk/writable_db.h"
#include "profiles/upkeep/lock.h"

namespace sonde {

class DbOwner {
 public:
  // Takes an archive that is ours to write. Waits up to `wait` for the lock's holder; kBusy.
  static Result<std::unique_ptr<DbOwner>> Take(std::shared_ptr<SharedDb> db, Nanos wait);
  // Waits for the readers of the database that is open here.
  ~DbOwner() { Close(); }
  DbOwner(const DbOwner&) = delete;
  DbOwner& operator=(const DbOwner&) = delete;

  const ArchivePaths& paths() const { return db_->paths; }
  bool IsOpen() const { return Mine() != nullptr; }
  // The open db/, to write in; else why it is closed.
  Result<SharedDb::Opened> Now() const;
  // The same, opened anew if a failure has stopped or closed db/. The caller must let the result go
  // before Recover or Close, which wait for that.
  Result<SharedDb::Opened> Writable();

  // Whether a failure has stopped db/, or it is closed.
  bool NeedsRecovery() const;
  // Whether db/ is closed for another reason than that another program has it.
  bool ClosedByFailure() const;
  // If a failure has stopped db/: closes it and opens it anew, or gives its lock away. kCorrupt,
  // with db/ open, if an acknowledged record is lost; only the first call says so.
  Status Recover();

  // The result of `work` on db/, or why db/ cannot be opened.
  template <typename Work>
  auto With(const Work& work) -> std::invoke_result_t<Work, WritableDb&> {
    const auto open = Writable();
    if (!open.ok()) return open.status();
    return work(*(*open)->writable);
  }
  // The same, then recovers.
  template <typename Work>
  auto Change(const Work& work) -> std::invoke_result_t<Work, WritableDb&> {
    return AndRecover(With(work));
  }
  // The result of a change, or kCorrupt if the recovery found a loss.
  template <typename T>
  T AndRecover(T result) {
    const Status recovered = Recover();
    return recovered.code() == Code::kCorrupt ? T(recovered) : std::move(result);
  }

  // Closes db/ and keeps the lock, for work on its files; until OpenAgain.
  void Close();
  Status OpenAgain();
  // Of the lock; nullptr without it.
  std::shared_ptr<Fence> claim() const { return lock_ ? lock_->claim() : nullptr; }
  // Touches the lock's file, which shows that its holder is alive. If another host has taken the
  // archive, db/ is stopped as after a failure.
  void Touch();

 private:
  explicit DbOwner(std::shared_ptr<SharedDb> db) : db_(std::move(db)) {}
  Status Lock(Nanos wait);
  // Needs the lock, and gives it away if db/ cannot be opened. Fails as Recover does.
  Status Open();
  // The database that is open here, or nullptr.
  SharedDb::Opened Mine() const;
  Status closed_by() const;
  void set_closed_by(Status why);

  const std::shared_ptr<SharedDb> db_;
  std::optional<ArchiveLock> lock_;  // none: db/ is closed, and anybody may open it
  // The records that were acknowledged before a failure and not checked since, and the state of db/
  // at that failure.
  WrittenRecords unchecked_;
  DbState left_;
  mutable std::mutex mutex_;            // guards the members below
  std::weak_ptr<const OpenedDb> mine_;  // the database that is open here
  Status closed_by_;                    // why db/ is closed, except between Close and OpenAgain
};

}  // namespace sonde
