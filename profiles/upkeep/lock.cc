#include "profiles/upkeep/lock.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "profiles/disk/lock_holder.h"

namespace sonde {
namespace {

constexpr size_t kMaxName = 4096;

Nanos LastTouch(const std::string& path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0 ? ChangeOf(info) : 0;
}

std::string OwnName() { return HostName() + "\n"; }

}  // namespace

Result<ArchiveLock> ArchiveLock::Acquire(const ArchivePaths& paths, Nanos wait) {
  auto lock = FileLock::Acquire(paths.db_lock(), wait);
  if (!lock.ok()) return lock.status();
  const auto holder = ReadSmallFile(paths.db_lock(), kMaxName);
  if (!holder.ok()) return holder.status();
  // If the clock was set back since, the time is no sign of life.
  const Nanos silent = std::abs(Clock::System().Now() - LastTouch(paths.db_lock()));
  // A text without its end was not written whole, and its writer is gone.
  if (holder->ends_with('\n') && *holder != OwnName() && silent < kSilence) {
    return Status(Code::kBusy, paths.db_lock() + " is held by host " +
                                   holder->substr(0, std::min<size_t>(holder->size() - 1, 256)) +
                                   ", or was until that died less than 10 minutes ago");
  }
  auto claim = Claim::Take(paths.db_owner());
  if (!claim.ok()) return claim.status();
  SONDE_RETURN_IF_ERROR(lock->Replace(OwnName()));
  return ArchiveLock(*std::move(lock), *std::move(claim));
}

ArchiveLock::~ArchiveLock() {
  // Another host that has taken the claim has put its name there.
  if (lock_.held() && claim_->Check().ok()) static_cast<void>(lock_.Replace(""));
}

Status WhoHolds(const ArchivePaths& paths, const Status& busy) {
  return {busy.code(), std::string(busy.message()) + ": " + LockHolder(paths.db_lock()) +
                           " has the archive open; try again when it has ended"};
}

Status ArchiveLock::Touch() {
  SONDE_RETURN_IF_ERROR(claim_->Check());
  static_cast<void>(lock_.Replace(OwnName()));
  return {};
}

}  // namespace sonde
