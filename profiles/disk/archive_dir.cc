#include "profiles/disk/archive_dir.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <memory>

namespace sonde {
namespace {

Status MakeDirectory(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) return {};
  return ArchiveError("make directory " + path, errno);
}

Status MakeParents(const std::string& path) {
  struct stat info;
  for (size_t slash = path.find('/', 1); slash != std::string::npos;
       slash = path.find('/', slash + 1)) {
    const std::string parent = path.substr(0, slash);
    if (::stat(parent.c_str(), &info) == 0) continue;
    SONDE_RETURN_IF_ERROR(MakeDirectory(parent));
  }
  return MakeDirectory(path);
}

Status CheckDirectory(const std::string& path, const struct stat& info) {
  if (!S_ISDIR(info.st_mode)) {
    return {Code::kInvalid, "archive " + path + " is not a directory" + ArchiveAdvice(ENOTDIR)};
  }
  return {};
}

Status WriteAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return SystemError("write");
    text.remove_prefix(static_cast<size_t>(n));
  }
  return {};
}

}  // namespace

std::string ArchiveAdvice(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
      return "; free some space or set SONDE_ARCHIVE to a directory on another file system";
    case EROFS:
    case EACCES:
    case EPERM:
    case ENOTDIR:
    case ELOOP:
      return "; set SONDE_ARCHIVE to a directory that you own and can write to";
    default:
      return "";
  }
}

bool WantsRoom(const Status& status) {
  return !status.ok() && status.message().find(ArchiveAdvice(ENOSPC)) != std::string_view::npos;
}

Status ArchiveError(const std::string& what, int error) {
  const Status status = SystemError(what, error);
  return {status.code(), std::string(status.message()) + ArchiveAdvice(error)};
}

Status PrepareArchive(const ArchivePaths& paths) {
  if (paths.root.empty() || paths.root[0] != '/') {
    return {Code::kInvalid, "archive '" + paths.root + "' is no absolute path"};
  }
  struct stat info;
  if (::stat(paths.root.c_str(), &info) != 0) {
    if (errno != ENOENT) return ArchiveError("look at archive " + paths.root, errno);
    SONDE_RETURN_IF_ERROR(MakeParents(paths.root));
    if (::stat(paths.root.c_str(), &info) != 0) {
      return ArchiveError("look at archive " + paths.root, errno);
    }
  }
  SONDE_RETURN_IF_ERROR(CheckDirectory(paths.root, info));
  if (info.st_uid != ::geteuid()) {
    return {Code::kPermission, "archive " + paths.root + " belongs to user " +
                                   std::to_string(info.st_uid) + ArchiveAdvice(EPERM)};
  }
  return MakeDirectory(paths.live());
}

Result<bool> IsReadOnly(const ArchivePaths& paths) {
  struct stat info;
  if (::stat(paths.root.c_str(), &info) != 0) {
    return SystemError("look at archive " + paths.root);
  }
  SONDE_RETURN_IF_ERROR(CheckDirectory(paths.root, info));
  if (info.st_uid != ::geteuid()) return true;
  return ::access(paths.root.c_str(), W_OK) != 0;
}

Status CheckNotReadOnly(const ArchivePaths& paths) {
  const auto read_only = IsReadOnly(paths);
  if (!read_only.ok() || !*read_only) return {};
  return {Code::kPermission, "the archive " + paths.root + " is only read here"};
}

Status WriteFileAtomically(const std::string& path, std::string_view text) {
  const std::string temporary = path + ".new";
  if (IsIrregular(temporary)) ::unlink(temporary.c_str());
  UniqueFd fd = OpenRegular(temporary, O_WRONLY | O_CREAT | O_TRUNC);
  if (fd.get() < 0) return ArchiveError("write " + path, errno);
  // A file system may write the name before what is in the file; then the power goes. Where there
  // was no file yet, nothing is lost by that, and a short step need not wait for the disk.
  const bool replaces = ::access(path.c_str(), F_OK) == 0;
  bool written = WriteAll(fd.get(), text).ok() && (!replaces || ::fsync(fd.get()) == 0);
  // Some file systems report only at the close that they could not write.
  written = written && ::close(fd.Release()) == 0;
  if (written && ::rename(temporary.c_str(), path.c_str()) == 0) return {};
  const int error = errno;
  ::unlink(temporary.c_str());
  return ArchiveError("write " + path, error);
}

UniqueFd OpenRegular(const std::string& path, int flags) {
  UniqueFd fd(::open(path.c_str(), flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW, 0600));
  struct stat info;
  const bool known = fd.get() >= 0 && ::fstat(fd.get(), &info) == 0;
  // Nobody reads the FIFO that is there.
  const bool fifo = fd.get() < 0 && errno == ENXIO;
  if (!fifo && !known) return {};
  if (known && S_ISREG(info.st_mode)) return fd;
  fd.Reset();
  errno = EINVAL;
  return {};
}

Result<bool> Exists(const std::string& path) {
  struct stat info;
  if (::lstat(path.c_str(), &info) == 0) return true;
  if (errno == ENOENT || errno == ENOTDIR) return false;
  return SystemError("look at " + path);
}

bool IsIrregular(const std::string& path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode);
}

Result<std::string> ReadSmallFile(const std::string& path, size_t limit) {
  const UniqueFd fd = OpenRegular(path, O_RDONLY);
  if (fd.get() < 0 && errno == EINVAL) {
    return Status(Code::kInvalid, path + " is not a regular file");
  }
  if (fd.get() < 0) return SystemError("read " + path);
  return ReadSmallFile(fd.get(), path, limit);
}

Result<std::string> ReadSmallFile(int fd, const std::string& path, size_t limit) {
  struct stat info;
  if (::fstat(fd, &info) != 0) return SystemError("read " + path);
  if (static_cast<uint64_t>(info.st_size) > limit) {
    return Status(Code::kLimit, path + " is longer than " + std::to_string(limit) + " bytes");
  }
  std::string text(static_cast<size_t>(info.st_size), '\0');
  size_t got = 0;
  while (got < text.size()) {
    const ssize_t n = ::read(fd, text.data() + got, text.size() - got);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return SystemError("read " + path);
    if (n == 0) break;
    got += static_cast<size_t>(n);
  }
  text.resize(got);
  return text;
}

bool IsUnread(const Status& read) {
  return !read.ok() && read.code() != Code::kNotFound && read.code() != Code::kInvalid &&
         read.code() != Code::kLimit;
}

// Opening it anew has a network file system look at the server.
Result<bool> IsAt(int fd, const std::string& path) {
  struct stat there;
  struct stat ours;
  // A handle that went stale is looked up anew the second time.
  for (int tries = 2; tries > 0; --tries) {
    const UniqueFd now(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
    if (now.get() < 0 && (errno == ENOENT || errno == ENOTDIR)) return false;
    if (now.get() < 0 || ::fstat(now.get(), &there) != 0) continue;
    // Of a deleted file NFS may know nothing any more.
    if (::fstat(fd, &ours) != 0) return errno == ESTALE ? Result<bool>(false) : SystemError(path);
    return there.st_dev == ours.st_dev && there.st_ino == ours.st_ino;
  }
  return SystemError("look at " + path);
}

Status SyncPath(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
  // A missing file was just replaced by LevelDB, which had synced it before.
  if (fd.get() < 0 && errno == ENOENT) return {};
  if (fd.get() < 0 || ::fsync(fd.get()) != 0) return ArchiveError("sync " + path, errno);
  return {};
}

Status SyncDirectory(const std::string& path) {
  const auto names = ListNames(path);
  if (!names.ok()) return names.status();
  for (const std::string& name : *names) SONDE_RETURN_IF_ERROR(SyncPath(path + "/" + name));
  return SyncPath(path);
}

Result<std::vector<std::string>> ListNames(const std::string& path) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir(path.c_str()), ::closedir);
  if (!dir && (errno == ENOENT || errno == ENOTDIR)) return names;
  if (!dir) return SystemError("read directory " + path);
  errno = 0;
  while (const dirent* entry = ::readdir(dir.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
    errno = 0;
  }
  if (errno != 0) return SystemError("read directory " + path);
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> NamesIn(const std::string& path) {
  auto names = ListNames(path);
  return names.ok() ? *std::move(names) : std::vector<std::string>();
}

Nanos ChangeOf(const struct stat& file) {
  return file.st_mtim.tv_sec * kSecond + file.st_mtim.tv_nsec;
}

Result<Nanos> NewestChange(const std::string& path) {
  Nanos newest = 0;
  const auto names = ListNames(path);
  if (!names.ok()) return names.status();
  for (const std::string& name : *names) {
    struct stat info;
    // It is gone: that was a change, and no time tells when.
    if (::lstat((path + "/" + name).c_str(), &info) != 0) {
      if (errno == ENOENT) continue;
      return SystemError("look at " + path + "/" + name);
    }
    newest = std::max(newest, ChangeOf(info));
  }
  return newest;
}

Result<Nanos> FileSystemTime(const std::string& directory) {
  std::string path = directory + "/.time-XXXXXX";
  const UniqueFd fd(::mkostemp(path.data(), O_CLOEXEC));
  if (fd.get() < 0) return ArchiveError("make a file in " + directory, errno);
  struct stat info;
  const bool told = ::fstat(fd.get(), &info) == 0;
  const int error = errno;
  ::unlink(path.c_str());
  if (!told) return SystemError("look at a file in " + directory, error);
  return ChangeOf(info);
}

Result<uint64_t> RandomNumber() {
  uint64_t number = 0;
  if (::getrandom(&number, sizeof number, 0) != sizeof number) return SystemError("draw a number");
  return number;
}

std::string HostName() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "";
  return name.data();
}

}  // namespace sonde
