// db/ as its owner has it: open for writing, with its lock, or closed by a failure until the next
// change.
//
// After a failure db/ is closed and opened anew (Recover), and what was acknowledged is looked for;
// who wanted to change something is told of a loss, and whatever comes next goes on. Where db/
// cannot be opened, its lock goes as well, so that another program can make room, and it is tried
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
  // Of an archive that is ours to write. Waits up to `wait` for whoever has the lock; kBusy.
  static Result<std::unique_ptr<DbOwner>> Take(std::shared_ptr<SharedDb> db, Nanos wait);
  // Waits for those who read what is open here.
  ~DbOwner() { Close(); }
  DbOwner(const DbOwner&) = delete;
  DbOwner& operator=(const DbOwner&) = delete;

  const ArchivePaths& paths() const { return db_->paths; }
  bool IsOpen() const { return Mine() != nullptr; }
  // db/ to write in; else why it is closed.
  Result<SharedDb::Opened> Now() const;
  // The same, opened anew if a failure has stopped or closed it. Who has it must not keep it until
  // Recover or Close, which wait for that.
  Result<SharedDb::Opened> Writable();

  // Whether a failure has stopped db/, or it is closed.
  bool NeedsRecovery() const;
  // Whether it is closed for something else than another program that has it.
  bool ClosedByFailure() const;
  // If a failure has stopped db/: closes it and opens it anew, or gives its lock away. kCorrupt,
  // and db/ open, if something acknowledged is lost; that is said once.
  Status Recover();

  // What `work` gives on db/, or why that cannot be opened.
  template <typename Work>
  auto With(const Work& work) -> std::invoke_result_t<Work, WritableDb&> {
    const auto open = Writable();
    if (!open.ok()) return open.status();
    return work(*(*open)->writable);
  }
  // The same, and recovers.
  template <typename Work>
  auto Change(const Work& work) -> std::invoke_result_t<Work, WritableDb&> {
    return AndRecover(With(work));
  }
  // What a change has come to, or that it was found that something is lost.
  template <typename T>
  T AndRecover(T result) {
    const Status recovered = Recover();
    return recovered.code() == Code::kCorrupt ? T(recovered) : std::move(result);
  }

  // Closes db/ and keeps the lock, for work on its files; until OpenAgain.
  void Close();
  Status OpenAgain();
  // Says by the lock's file that its holder is alive.
  void Touch();

 private:
  explicit DbOwner(std::shared_ptr<SharedDb> db) : db_(std::move(db)) {}
  Status Lock(Nanos wait);
  // With the lock, which it gives away if db/ cannot be opened. As Recover.
  Status Open();
  // What is open here; nullptr.
  SharedDb::Opened Mine() const;
  Status closed_by() const;
  void set_closed_by(Status why);

  const std::shared_ptr<SharedDb> db_;
  std::optional<ArchiveLock> lock_;  // none: db/ is closed, and anybody's
  // What was acknowledged before a failure and has not been looked for since, and db/ as it was
  // left then.
  WrittenRecords unchecked_;
  DbState left_;
  mutable std::mutex mutex_;            // of those below
  std::weak_ptr<const OpenedDb> mine_;  // what is open here
  Status closed_by_;                    // why nothing is, but between Close and OpenAgain
};

}  // namespace sonde
