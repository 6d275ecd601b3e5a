// The lock of db/: its holder may open the database for writing.
//
// It is a record lock (disk/file_lock.h), which is gone when its holder is. Some shared file
// systems grant such locks on each host separately; so that two hosts never write to one database,
// the file names its holder's host as long as it is held. A process that gets the lock and finds
// another host's name in the file believes it for kSilence after the holder last touched the file.
// Then that host counts as dead.
//
// Thread safety: one thread at a time.
#pragma once

#include <string>

#include "core/status.h"
#include "core/time.h"
#include "profiles/disk/archive_dir.h"
#include "profiles/disk/file_lock.h"

namespace sonde {

class ArchiveLock {
 public:
  static constexpr Nanos kSilence = 600 * kSecond;

  ArchiveLock() = default;
  ArchiveLock(ArchiveLock&&) noexcept = default;
  ArchiveLock& operator=(ArchiveLock&&) noexcept = default;
  // Removes the name from the file.
  ~ArchiveLock();

  // Waits up to `wait`; kBusy if another process has the lock then.
  static Result<ArchiveLock> Acquire(const ArchivePaths& paths, Nanos wait);
  // A long holder calls this now and then to show that it is alive.
  void Touch();

 private:
  explicit ArchiveLock(FileLock lock) : lock_(std::move(lock)) {}
  FileLock lock_;
};

// The failure to get the lock, which names its holder: "...: process 4711 (sonde)".
Status WhoHolds(const ArchivePaths& paths, const Status& busy);

}  // namespace sonde
