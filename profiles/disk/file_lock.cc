#include "profiles/disk/file_lock.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <iterator>
#include <thread>
#include <utility>

#include "core/unique_fd.h"
#include "profiles/disk/archive_dir.h"

namespace sonde {
namespace {

// Far beyond the file's text: shares lock this byte, the lock covers all bytes before it.
constexpr off_t kShared = off_t{1} << 62;

struct flock ForHolder() {
  struct flock range {};
  range.l_type = F_WRLCK;
  range.l_whence = SEEK_SET;
  range.l_len = kShared;
  return range;
}

struct flock ForReaders(short type) {
  struct flock range {};
  range.l_type = type;
  range.l_whence = SEEK_SET;
  range.l_start = kShared;
  range.l_len = 1;
  return range;
}

// Whether opening a file has failed for a reason that says nothing of its locks.
bool SaysNothing(int error) {
  constexpr int kKnown[] = {ENOENT, ENOTDIR, EINVAL, ELOOP, EACCES, EPERM};
  return std::find(std::begin(kKnown), std::end(kKnown), error) == std::end(kKnown);
}

// Whether another holder has a lock that conflicts with `range`, or may have.
bool IsInTheWay(const std::string& path, struct flock range) {
  const UniqueFd fd = OpenRegular(path, O_RDONLY);
  if (fd.get() < 0) return SaysNothing(errno);
  return ::fcntl(fd.get(), F_OFD_GETLK, &range) == 0 && range.l_type != F_UNLCK;
}

}  // namespace

FileLock::FileLock(FileLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

FileLock& FileLock::operator=(FileLock&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

FileLock::~FileLock() { Release(); }

void FileLock::Release() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

Result<FileLock> FileLock::Acquire(const std::string& path, Nanos wait) {
  FileLock lock(OpenRegular(path, O_RDWR | O_CREAT).Release());
  if (lock.fd_ < 0 && errno == EINVAL) {
    return Status(Code::kInvalid, path + " is not a regular file; delete it");
  }
  if (lock.fd_ < 0) return ArchiveError("open " + path, errno);
  const Nanos deadline = Clock::System().Monotonic() + wait;
  Nanos pause = kMillisecond;
  while (true) {
    struct flock range = ForHolder();
    if (::fcntl(lock.fd_, F_OFD_SETLK, &range) == 0) return lock;
    if (errno == EINTR) continue;
    if (errno != EAGAIN && errno != EACCES) {
      return SystemError("lock " + path +
                         " (does the file system support locks? if not, set SONDE_ARCHIVE to a "
                         "directory on one that does)");
    }
    const Nanos left = deadline - Clock::System().Monotonic();
    if (left <= 0) return Status(Code::kBusy, path + " is held by another process");
    std::this_thread::sleep_for(std::chrono::nanoseconds(std::min(left, pause)));
    pause = std::min(pause * 2, 50 * kMillisecond);
  }
}

Status FileLock::Write(std::string_view text) {
  const ssize_t n = ::pwrite(fd_, text.data(), text.size(), 0);
  const bool written = n == static_cast<ssize_t>(text.size());
  if (written && ::ftruncate(fd_, n) == 0) return {};
  return ArchiveError("write a lock file of the archive", n < 0 || written ? errno : ENOSPC);
}

Status FileLock::Replace(std::string_view text) {
  const Status written = Write(text);
  // On a full disk the file stays empty rather than holding half of the text.
  if (!written.ok()) static_cast<void>(::ftruncate(fd_, 0));
  return written;
}

Result<bool> FileLock::IsAt(const std::string& path) const { return sonde::IsAt(fd_, path); }

void FileLock::Touch() const { static_cast<void>(::futimens(fd_, nullptr)); }

bool FileLock::IsLocked(const std::string& path) { return IsInTheWay(path, ForHolder()); }

FileShare::FileShare(FileShare&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

FileShare& FileShare::operator=(FileShare&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

FileShare::~FileShare() {
  if (fd_ >= 0) ::close(fd_);
}

FileShare FileShare::Take(const std::string& path) {
  FileShare share(OpenRegular(path, O_RDONLY).Release());
  struct flock range = ForReaders(F_RDLCK);
  if (share.fd_ < 0 || ::fcntl(share.fd_, F_OFD_SETLK, &range) != 0) return {};
  return share;
}

bool FileShare::IsTaken(const std::string& path) { return IsInTheWay(path, ForReaders(F_WRLCK)); }

}  // namespace sonde
