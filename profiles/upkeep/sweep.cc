#include "profiles/upkeep/sweep.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

#include "profiles/disk/file_lock.h"
#include "profiles/live/live_steps.h"

namespace sonde {
namespace {

constexpr Nanos kSweepAge = 600 * kSecond;
constexpr Nanos kNfsAge = 24 * 3600 * kSecond;

// Whether it was done long ago, or by a clock that was set back since.
bool IsOld(Nanos now, Nanos then, Nanos age) { return std::abs(now - then) > age; }

// Files that nobody has an interest in after a while.
void SweepOld(const std::string& directory, std::string_view prefix, Nanos now) {
  for (const std::string& name : NamesIn(directory)) {
    const std::string path = directory + "/" + name;
    struct stat info;
    if (!name.starts_with(prefix) || ::lstat(path.c_str(), &info) != 0) continue;
    // Its name is changed when it is deleted; its content may be old.
    const Nanos changed = info.st_ctim.tv_sec * kSecond + info.st_ctim.tv_nsec;
    if (IsOld(now, changed, kNfsAge)) ::unlink(path.c_str());
  }
}

// Of the directory itself and what is in it: one that is just being made is empty.
Result<Nanos> NewestChangeOf(const std::string& directory) {
  struct stat info;
  if (::lstat(directory.c_str(), &info) != 0) return SystemError("look at " + directory);
  const auto inside = NewestChange(directory);
  if (!inside.ok()) return inside.status();
  return std::max(*inside, ChangeOf(info));
}

}  // namespace

void SweepArchive(const ArchivePaths& archive, Nanos now) {
  // A file that was deleted while a process of the same host had it open; NFS deletes it when that
  // process closes it, but not when the host dies before.
  SweepOld(archive.db(), ".nfs", now);
  // Of processes that were killed while they took or gave back a claim.
  SweepOld(archive.root, "db.owner.", now);
  // And while they asked for the time (FileSystemTime), as SweepArchive does in this directory.
  SweepOld(archive.root, ".time-", now);
  for (const std::string& name : NamesIn(archive.waiting())) {
    const auto there = Exists(archive.live() + "/" + name);
    if (there.ok() && !*there) ForgetWaiting(archive, name);
  }
  for (const std::string& name : NamesIn(archive.live())) {
    if (name[0] != kHidden) continue;
    const LivePaths paths(archive.live() + "/" + name);
    const bool gone = name.starts_with(std::string(1, kHidden) + "gone-");
    const auto changed = NewestChangeOf(paths.dir);
    const bool old = changed.ok() && IsOld(now, *changed, kSweepAge);
    if (!gone && (!old || FileLock::IsLocked(paths.lock()))) continue;
    std::error_code ignored;
    std::filesystem::remove_all(paths.dir, ignored);
  }
}

void SweepArchive(const ArchivePaths& archive) {
  const auto now = FileSystemTime(archive.root);
  if (now.ok()) SweepArchive(archive, *now);
}

}  // namespace sonde
