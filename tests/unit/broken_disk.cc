#include "tests/unit/broken_disk.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdarg>
#include <map>
#include <mutex>

namespace sonde::broken_disk {
namespace {

// Never destroyed: LevelDB's thread may write until the process is gone.
struct State {
  std::mutex mutex;
  std::string root;
  Plan plan;
  uint64_t changes = 0;
  std::map<std::string, off_t> synced;  // of the files that were changed: bytes that would be left
};
State& Shared() {
  static State& state = *new State;  // NOLINT(cppcoreguidelines-owning-memory)
  return state;
}
std::atomic<bool> armed = false;

bool Below(const State& state, const std::string& path) {
  return path.size() > state.root.size() && path.starts_with(state.root) &&
         path[state.root.size()] == '/';
}

std::string PathOf(int fd) {
  char path[PATH_MAX];
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t n = ::readlink(link.c_str(), path, sizeof(path));
  return n <= 0 ? "" : std::string(path, static_cast<size_t>(n));
}

std::string PathAt(int directory, const char* path) {
  if (path[0] == '/' || directory == AT_FDCWD) return path;
  return PathOf(directory) + "/" + path;
}

off_t SizeOf(const std::string& path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0 ? info.st_size : 0;
}

[[noreturn]] void Die() {
  ::kill(::getpid(), SIGKILL);
  while (true) ::pause();
}

[[noreturn]] void LosePower(const State& state) {
  for (const auto& [path, size] : state.synced) {
    if (SizeOf(path) > size) ::syscall(SYS_truncate, path.c_str(), size);
  }
  Die();
}

// One change on its way: what comes of it is decided when this is made, and all others wait.
class Change {
 public:
  Change(const std::string& path, bool takes_space) : lock_(Shared().mutex) {
    State& state = Shared();
    if (!Below(state, path)) return;
    counted_ = true;
    const uint64_t n = ++state.changes;
    const Plan& plan = state.plan;
    const bool hit = n == plan.at;
    if (hit && plan.fault == Fault::kKill) Die();
    if (hit && plan.fault == Fault::kPower) LosePower(state);
    tear_ = hit && plan.fault == Fault::kTear;
    fails_ = takes_space &&
             ((hit && plan.fault == Fault::kOnce) || (n >= plan.at && plan.fault == Fault::kFull));
  }
  ~Change() {
    if (tear_) Die();
  }
  Change(const Change&) = delete;
  Change& operator=(const Change&) = delete;

  bool counted() const { return counted_; }
  bool tear() const { return tear_; }
  bool fails() const {
    if (fails_) errno = Shared().plan.error;
    return fails_;
  }

 private:
  std::lock_guard<std::mutex> lock_;
  bool counted_ = false;
  bool tear_ = false;
  bool fails_ = false;
};

// The first change of a file: what it had until then would be left.
void Touch(const std::string& path, off_t size) { Shared().synced.try_emplace(path, size); }

int Open(int directory, const char* path, int flags, mode_t mode) {
  const auto call = [&] {
    return static_cast<int>(::syscall(SYS_openat, directory, path, flags, mode));
  };
  if (!armed || (flags & (O_CREAT | O_TRUNC)) == 0) return call();
  const std::string at = PathAt(directory, path);
  struct stat info;
  const bool there = ::stat(at.c_str(), &info) == 0;
  if (there && ((flags & O_TRUNC) == 0 || info.st_size == 0)) return call();
  const Change change(at, true);
  if (change.fails()) return -1;
  const int fd = call();
  if (fd >= 0 && change.counted()) {
    Shared().synced[at] = 0;
  }
  return fd;
}

ssize_t Write(int fd, const void* data, size_t size, off_t offset) {
  const auto call = [&](size_t n) -> ssize_t {
    return offset < 0 ? ::syscall(SYS_write, fd, data, n)
                      : ::syscall(SYS_pwrite64, fd, data, n, offset);
  };
  if (!armed) return call(size);
  const std::string path = PathOf(fd);
  // What goes into the block that a small file has already takes no space.
  const off_t had = SizeOf(path);
  const bool has_block = offset >= 0 && had > 0 && offset + static_cast<off_t>(size) <= 4096;
  const Change change(path, !has_block);
  if (change.fails()) return -1;
  if (change.counted()) Touch(path, had);
  return call(change.tear() ? size / 2 : size);
}

int Sync(int fd, long number) {
  if (!armed) return static_cast<int>(::syscall(number, fd));
  const std::string path = PathOf(fd);
  const Change change(path, true);
  if (change.fails()) return -1;
  const int result = static_cast<int>(::syscall(number, fd));
  if (result == 0 && change.counted()) Shared().synced[path] = SizeOf(path);
  return result;
}

// What is known to be synced below a name, under its new one.
std::map<std::string, off_t> TakeSynced(const std::string& old, const std::string& to) {
  std::map<std::string, off_t>& synced = Shared().synced;
  std::map<std::string, off_t> moved;
  for (auto it = synced.begin(); it != synced.end();) {
    const bool moves = it->first == old || it->first.starts_with(old + "/");
    if (moves) moved[to + it->first.substr(old.size())] = it->second;
    it = moves ? synced.erase(it) : std::next(it);
  }
  return moved;
}

int Rename(const char* from, const char* to) {
  if (!armed) return static_cast<int>(::syscall(SYS_rename, from, to));
  const Change change(from, true);
  if (change.fails()) return -1;
  const int result = static_cast<int>(::syscall(SYS_rename, from, to));
  if (result != 0 || !change.counted()) return result;
  const auto moved = TakeSynced(from, to);
  for (const auto& [path, size] : moved) Shared().synced[path] = size;
  return result;
}

int Exchange(const char* one, const char* other) {
  if (armed && !Shared().plan.exchanges) {
    errno = EINVAL;
    return -1;
  }
  const auto call = [&] {
    return static_cast<int>(
        ::syscall(SYS_renameat2, AT_FDCWD, one, AT_FDCWD, other, RENAME_EXCHANGE));
  };
  if (!armed) return call();
  const Change change(one, false);
  if (change.fails()) return -1;
  const int result = call();
  if (result != 0 || !change.counted()) return result;
  for (const auto& moved : {TakeSynced(one, other), TakeSynced(other, one)}) {
    for (const auto& [path, size] : moved) Shared().synced[path] = size;
  }
  return result;
}

int Remove(int directory, const char* path, int flags) {
  const auto call = [&] {
    return static_cast<int>(::syscall(SYS_unlinkat, directory, path, flags));
  };
  if (!armed) return call();
  const std::string at = PathAt(directory, path);
  const Change change(at, false);
  const int result = call();
  if (result == 0 && change.counted()) Shared().synced.erase(at);
  return result;
}

int MakeDirectory(const char* path, mode_t mode) {
  const auto call = [&] { return static_cast<int>(::syscall(SYS_mkdir, path, mode)); };
  struct stat info;
  if (!armed || ::stat(path, &info) == 0) return call();
  const Change change(path, true);
  return change.fails() ? -1 : call();
}

mode_t ModeOf(int flags, va_list arguments) {
  return (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
}

}  // namespace

void Arm(const std::string& root, const Plan& plan) {
  Shared().root = root;
  Shared().plan = plan;
  armed = true;
}

uint64_t Changes() {
  const std::lock_guard lock(Shared().mutex);
  return Shared().changes;
}

void Repair() {
  const std::lock_guard lock(Shared().mutex);
  Shared().plan = {};
}

}  // namespace sonde::broken_disk

// What libc has under these names is not called any more, by nobody in this program.
#pragma GCC visibility push(default)
extern "C" {
// NOLINTBEGIN(cert-dcl50-cpp, readability-inconsistent-declaration-parameter-name)
ssize_t write(int fd, const void* data, size_t size) {
  return sonde::broken_disk::Write(fd, data, size, -1);
}
ssize_t pwrite(int fd, const void* data, size_t size, off_t offset) {
  return sonde::broken_disk::Write(fd, data, size, offset);
}
int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = sonde::broken_disk::ModeOf(flags, arguments);
  va_end(arguments);
  return sonde::broken_disk::Open(AT_FDCWD, path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = sonde::broken_disk::ModeOf(flags, arguments);
  va_end(arguments);
  return sonde::broken_disk::Open(AT_FDCWD, path, flags, mode);
}
int fsync(int fd) { return sonde::broken_disk::Sync(fd, SYS_fsync); }
int fdatasync(int fd) { return sonde::broken_disk::Sync(fd, SYS_fdatasync); }
int rename(const char* from, const char* to) noexcept {
  return sonde::broken_disk::Rename(from, to);
}
// The only use there is of it.
int renameat2(int, const char* from, int, const char* to, unsigned) noexcept {
  return sonde::broken_disk::Exchange(from, to);
}
int unlink(const char* path) noexcept { return sonde::broken_disk::Remove(AT_FDCWD, path, 0); }
int unlinkat(int directory, const char* path, int flags) noexcept {
  return sonde::broken_disk::Remove(directory, path, flags);
}
int rmdir(const char* path) noexcept {
  return sonde::broken_disk::Remove(AT_FDCWD, path, AT_REMOVEDIR);
}
int mkdir(const char* path, mode_t mode) noexcept {
  return sonde::broken_disk::MakeDirectory(path, mode);
}
// NOLINTEND(cert-dcl50-cpp, readability-inconsistent-declaration-parameter-name)
}
#pragma GCC visibility pop
