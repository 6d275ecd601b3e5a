// The lock of db/: its holder may open the database for writing.
//
// It is a record lock (disk/file_lock.h), which is gone when its holder is. Some shared file
// systems grant such locks on each host separately; so that two hosts never write to one database,
// the holder has a claim as well (disk/claim.h), which only one host can have. Earlier releases
// know no claims, so the lock's file names its holder's host as long as it is held, and a process
// that gets the lock and finds another host's name in the file believes it for kSilence after the
// holder last touched the file. Then that host counts as dead.
//
// Thread safety: one thread at a time.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "core/status.h"
#include "core/time.h"
#include "profiles/disk/archive_dir.h"
#include "profiles/disk/claim.h"
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
  // Fails if another host has taken the claim.
  Status Touch();
  // For whoever changes db/ under this lock.
  const std::shared_ptr<Claim>& claim() const { return claim_; }

 private:
  ArchiveLock(FileLock lock, std::shared_ptr<Claim> claim)
      : lock_(std::move(lock)), claim_(std::move(claim)) {}
  FileLock lock_;
  std::shared_ptr<Claim> claim_;
};

// The failure to get the lock, which names its holder: "...: process 4711 (sonde)".
Status WhoHolds(const ArchivePaths& paths, const Status& busy);

}  // namespace sonde
