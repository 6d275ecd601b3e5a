// A disk that breaks under programs that know nothing of it: loaded into each by LD_PRELOAD, it
// sees what the program does below one directory, and does as its environment says. campaign.py
// sets it.
//
// SONDE_DISK_ROOT     the directory, without a symbolic link in it
// SONDE_DISK_TELL     a file to which the library appends a line for what a power cut would take
//                     back, and for each fault that it has made ("fault KIND PID")
// SONDE_DISK_FAULT    none, or what happens at the call number SONDE_DISK_AT: of those that change
//                     something kill, tear (a kill after half of a write), stop (SIGSTOP), full
//                     (ENOSPC) or eio; of those that read unread (EIO), emfile or rest (SIGSTOP).
//                     Errors last for SONDE_DISK_FOR calls.
// SONDE_DISK_HOST     a number: the process is of that host, whose locks no other host sees
// SONDE_DISK_AHEAD    seconds by which the wall clock of the process is ahead
//
// Lines: "made INODE", "synced INODE SIZE", "names DIRECTORY", "renamed INODE FROM TO KEPT", where
// KEPT is another name of the file that was replaced, or "-".
//
// Thread safety: all calls from any thread.
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

namespace {

std::string_view Setting(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? "" : text;
}

int64_t Number(const char* name) { return std::atoll(std::string(Setting(name)).c_str()); }

// Never destroyed: threads may write until the process is gone.
struct Plan {
  const std::string root{Setting("SONDE_DISK_ROOT")};
  const std::string tell{Setting("SONDE_DISK_TELL")};
  const std::string fault{Setting("SONDE_DISK_FAULT")};
  const uint64_t at = static_cast<uint64_t>(Number("SONDE_DISK_AT"));
  const uint64_t last = at + static_cast<uint64_t>(Number("SONDE_DISK_FOR"));
  const std::string host{Setting("SONDE_DISK_HOST")};
  const int64_t ahead = Number("SONDE_DISK_AHEAD");
  std::atomic<uint64_t> changes{0};
  std::atomic<uint64_t> reads{0};
  std::atomic<uint64_t> kept{0};
  std::atomic<bool> told{false};
};
Plan& Shared() {
  static Plan& plan = *new Plan;  // NOLINT(cppcoreguidelines-owning-memory)
  return plan;
}

int Openat(int directory, const char* path, int flags, mode_t mode) {
  return static_cast<int>(::syscall(SYS_openat, directory, path, flags, mode));
}

// One write is one line, also if several processes write.
void Tell(const std::string& line) {
  const int fd = Openat(AT_FDCWD, Shared().tell.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC, 0);
  if (fd < 0) return;
  const std::string text = line + "\n";
  ::syscall(SYS_write, fd, text.data(), text.size());
  ::syscall(SYS_close, fd);
}

void TellFault() {
  if (Shared().told.exchange(true)) return;
  Tell("fault " + Shared().fault + " " + std::to_string(::getpid()));
}

bool Below(const std::string& path) {
  const std::string& root = Shared().root;
  return !root.empty() && path.size() > root.size() && path.starts_with(root) &&
         path[root.size()] == '/';
}

std::string PathOf(int fd) {
  char path[PATH_MAX];
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t n = ::syscall(SYS_readlink, link.c_str(), path, sizeof path);
  return std::string(path, n > 0 ? static_cast<size_t>(n) : 0);
}

// Also of what is named below an open directory.
std::string PathAt(int directory, const std::string& path) {
  constexpr std::string_view kOpen = "/proc/self/fd/";
  const size_t slash = path.find('/', kOpen.size());
  if (path.starts_with(kOpen) && slash != std::string::npos) {
    return PathOf(std::atoi(path.c_str() + kOpen.size())) + path.substr(slash);
  }
  if (path.starts_with("/") || directory == AT_FDCWD) return path;
  return PathOf(directory) + "/" + path;
}

struct stat Look(const std::string& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) info.st_mode = 0;
  return info;
}

enum class Comes { kNothing, kError, kTear };

// What comes of the next change below the directory.
Comes Change(const std::string& path, bool takes_space) {
  Plan& plan = Shared();
  if (plan.at == 0 || !Below(path)) return Comes::kNothing;
  const uint64_t n = ++plan.changes;
  if (n < plan.at) return Comes::kNothing;
  if (plan.fault == "full" || plan.fault == "eio") {
    if (n >= plan.last || !takes_space) return Comes::kNothing;
    TellFault();
    errno = plan.fault == "full" ? ENOSPC : EIO;
    return Comes::kError;
  }
  const bool of_reads = plan.fault == "unread" || plan.fault == "emfile" || plan.fault == "rest";
  if (n != plan.at || of_reads) return Comes::kNothing;
  TellFault();
  if (plan.fault == "kill") ::kill(::getpid(), SIGKILL);
  if (plan.fault == "stop") ::kill(::getpid(), SIGSTOP);
  return plan.fault == "tear" ? Comes::kTear : Comes::kNothing;
}

// Whether the next read below the directory fails.
bool ReadFails(const std::string& path, bool opens) {
  Plan& plan = Shared();
  const bool stops = plan.fault == "rest";
  const bool fails = plan.fault == "unread" || (plan.fault == "emfile" && opens);
  if (plan.at == 0 || (!fails && !stops) || !Below(path)) return false;
  const uint64_t n = ++plan.reads;
  if (n < plan.at || n >= (stops ? plan.at + 1 : plan.last)) return false;
  TellFault();
  if (stops) ::kill(::getpid(), SIGSTOP);
  if (stops) return false;
  errno = plan.fault == "unread" ? EIO : EMFILE;
  return true;
}

void Tear(Comes comes) {
  if (comes == Comes::kTear) ::kill(::getpid(), SIGKILL);
}

int Open(int directory, const char* name, int flags, mode_t mode) {
  // Each host has a boot of its own.
  if (!Shared().host.empty() && std::strcmp(name, "/proc/sys/kernel/random/boot_id") == 0) {
    const int fd = static_cast<int>(::syscall(SYS_memfd_create, "boot", 0));
    const std::string boot = "boot-of-host" + Shared().host + "\n";
    ::syscall(SYS_write, fd, boot.data(), boot.size());
    ::syscall(SYS_lseek, fd, 0, SEEK_SET);
    return fd;
  }
  const std::string path = PathAt(directory, name);
  if (!Below(path)) return Openat(directory, name, flags, mode);
  if ((flags & O_ACCMODE) == O_RDONLY && ReadFails(path, true)) return -1;
  const struct stat before = Look(path);
  const bool makes = (flags & O_CREAT) != 0 && before.st_mode == 0;
  const bool cuts = (flags & O_TRUNC) != 0 && before.st_size > 0;
  if (!makes && !cuts) return Openat(directory, name, flags, mode);
  if (Change(path, true) == Comes::kError) return -1;
  const int fd = Openat(directory, name, flags, mode);
  if (fd < 0) return fd;
  const std::string inode = std::to_string(Look(path).st_ino);
  Tell(makes ? "made " + inode : "synced " + inode + " 0");
  return fd;
}

ssize_t Write(int fd, const void* data, size_t size, off_t offset) {
  const auto call = [&](size_t n) -> ssize_t {
    return offset < 0 ? ::syscall(SYS_write, fd, data, n)
                      : ::syscall(SYS_pwrite64, fd, data, n, offset);
  };
  if (Shared().at == 0) return call(size);
  const Comes comes = Change(PathOf(fd), true);
  if (comes == Comes::kError) return -1;
  const ssize_t n = call(comes == Comes::kTear ? size / 2 : size);
  Tear(comes);
  return n;
}

ssize_t Read(int fd, void* data, size_t size, off_t offset) {
  const bool counts = Shared().fault == "unread" || Shared().fault == "rest";
  if (counts && ReadFails(PathOf(fd), false)) return -1;
  return offset < 0 ? ::syscall(SYS_read, fd, data, size)
                    : ::syscall(SYS_pread64, fd, data, size, offset);
}

int Sync(int fd, long number) {
  const std::string path = PathOf(fd);
  const bool ours = Below(path) || path == Shared().root;
  if (ours && Change(path, true) == Comes::kError) return -1;
  const int result = static_cast<int>(::syscall(number, fd));
  struct stat info;
  if (!ours || result != 0 || ::fstat(fd, &info) != 0) return result;
  if (S_ISDIR(info.st_mode)) {
    Tell("names " + path);
  } else {
    Tell("synced " + std::to_string(info.st_ino) + " " + std::to_string(info.st_size));
  }
  return result;
}

// Another name, beside the directory, for the file that is about to lose its own.
std::string KeepAside(const std::string& path) {
  if (!S_ISREG(Look(path).st_mode)) return "-";
  Plan& plan = Shared();
  const std::string aside =
      plan.tell + "." + std::to_string(::getpid()) + "." + std::to_string(++plan.kept) + ".kept";
  const long linked = ::syscall(SYS_linkat, AT_FDCWD, path.c_str(), AT_FDCWD, aside.c_str(), 0);
  return linked == 0 ? aside : "-";
}

int Rename(const char* from, const char* to, unsigned flags) {
  const auto call = [&] {
    return static_cast<int>(::syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, flags));
  };
  if (!Below(from)) return call();
  const Comes comes = Change(from, true);
  if (comes == Comes::kError) return -1;
  const struct stat file = Look(from);
  const bool is_file = S_ISREG(file.st_mode) && flags == 0;
  const std::string kept = is_file ? KeepAside(to) : "-";
  const int result = call();
  if (result == 0 && is_file) {
    Tell("renamed " + std::to_string(file.st_ino) + " " + from + " " + to + " " + kept);
  }
  Tear(comes);
  return result;
}

int Remove(int directory, const char* path, int flags) {
  const Comes comes = Change(PathAt(directory, path), false);
  const int result = static_cast<int>(::syscall(SYS_unlinkat, directory, path, flags));
  Tear(comes);
  return result;
}

// The locks of each host are on bytes of their own.
void OfHost(struct flock& range) {
  constexpr off_t kShared = off_t{1} << 62;
  constexpr int kHosts = 58;  // 2^58 bytes each
  const off_t host = std::atoi(Shared().host.c_str());
  if (range.l_start == 0 && range.l_len == kShared) {
    range.l_start = host << kHosts;
    range.l_len = off_t{1} << kHosts;
  } else if (range.l_start == kShared) {
    range.l_start += host;
  }
}

mode_t ModeOf(int flags, va_list arguments) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
}

template <typename F>
F Next(const char* name) {
  return reinterpret_cast<F>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

// These stand before the C library's.
#pragma GCC visibility push(default)
extern "C" {
// NOLINTBEGIN(cert-dcl50-cpp, readability-inconsistent-declaration-parameter-name)
int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = ModeOf(flags, arguments);
  va_end(arguments);
  return Open(AT_FDCWD, path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = ModeOf(flags, arguments);
  va_end(arguments);
  return Open(AT_FDCWD, path, flags, mode);
}
DIR* opendir(const char* path) {
  static const auto real = Next<DIR* (*)(const char*)>("opendir");
  return ReadFails(PathAt(AT_FDCWD, path), true) ? nullptr : real(path);
}
ssize_t read(int fd, void* data, size_t size) { return Read(fd, data, size, -1); }
ssize_t pread(int fd, void* data, size_t size, off_t offset) {
  return Read(fd, data, size, offset);
}
ssize_t pread64(int fd, void* data, size_t size, off_t offset) {
  return Read(fd, data, size, offset);
}
ssize_t write(int fd, const void* data, size_t size) { return Write(fd, data, size, -1); }
ssize_t pwrite(int fd, const void* data, size_t size, off_t offset) {
  return Write(fd, data, size, offset);
}
ssize_t pwrite64(int fd, const void* data, size_t size, off_t offset) {
  return Write(fd, data, size, offset);
}
int fsync(int fd) { return Sync(fd, SYS_fsync); }
int fdatasync(int fd) { return Sync(fd, SYS_fdatasync); }
int rename(const char* from, const char* to) noexcept { return Rename(from, to, 0); }
int renameat2(int, const char* from, int, const char* to, unsigned flags) noexcept {
  return Rename(from, to, flags);
}
int link(const char* from, const char* to) noexcept {
  if (Change(to, true) == Comes::kError) return -1;
  return static_cast<int>(::syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0));
}
int unlink(const char* path) noexcept { return Remove(AT_FDCWD, path, 0); }
int unlinkat(int directory, const char* path, int flags) noexcept {
  return Remove(directory, path, flags);
}
int rmdir(const char* path) noexcept { return Remove(AT_FDCWD, path, AT_REMOVEDIR); }
int mkdir(const char* path, mode_t mode) noexcept {
  if (Look(path).st_mode == 0 && Change(path, true) == Comes::kError) return -1;
  return static_cast<int>(::syscall(SYS_mkdir, path, mode));
}
int fcntl(int fd, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  void* argument = va_arg(arguments, void*);
  va_end(arguments);
  const bool locks = command == F_OFD_SETLK || command == F_OFD_GETLK;
  if (locks && !Shared().host.empty()) {
    struct flock& range = *static_cast<struct flock*>(argument);
    const struct flock asked = range;
    OfHost(range);
    const int result = static_cast<int>(::syscall(SYS_fcntl, fd, command, argument));
    range.l_start = asked.l_start;
    range.l_len = asked.l_len;
    return result;
  }
  return static_cast<int>(::syscall(SYS_fcntl, fd, command, argument));
}
int gethostname(char* name, size_t size) noexcept {
  static const auto real = Next<int (*)(char*, size_t)>("gethostname");
  if (Shared().host.empty()) return real(name, size);
  const std::string own = "host" + Shared().host;
  std::strncpy(name, own.c_str(), size);
  return 0;
}
int clock_gettime(clockid_t clock, struct timespec* now) noexcept {
  const int result = static_cast<int>(::syscall(SYS_clock_gettime, clock, now));
  if (clock == CLOCK_REALTIME) now->tv_sec += Shared().ahead;
  return result;
}
// NOLINTEND(cert-dcl50-cpp, readability-inconsistent-declaration-parameter-name)
}
#pragma GCC visibility pop
