#include "tests/unit/broken_disk.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdarg>
#include <iterator>
#include <map>
#include <mutex>
#include <random>
#include <utility>
#include <vector>

namespace sonde::broken_disk {
namespace {

// A name that a file got, until it is synced.
struct Renamed {
  std::string from;
  std::string to;
  ino_t file = 0;
  std::string replaced;  // a name of the file that had the name before; "": none had
};

// Never destroyed: LevelDB's thread may write until the process is gone.
struct State {
  std::mutex mutex;
  std::string root;
  Plan plan;
  uint64_t changes = 0;
  std::map<std::string, off_t> synced;  // of the files that were changed: bytes that would be left
  // Of these what syncs that failed have lost: from, to.
  std::map<std::string, std::vector<std::pair<off_t, off_t>>> lost;
  std::vector<Renamed> renamed;  // in their order
  uint64_t replaced = 0;         // files that lost their name
  std::mt19937_64 random;
  uint64_t fails_until = 0;  // of kOften, a change
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

// 0: there is no regular file.
ino_t FileAt(const std::string& path) {
  struct stat info;
  return ::lstat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) ? info.st_ino : 0;
}

std::string DirectoryOf(const std::string& path) { return path.substr(0, path.rfind('/')); }

// The names that were not synced are the old ones again.
void TakeNamesBack(const State& state) {
  for (auto it = state.renamed.rbegin(); it != state.renamed.rend(); ++it) {
    if (FileAt(it->to) != it->file) continue;
    ::syscall(SYS_rename, it->to.c_str(), it->from.c_str());
    if (!it->replaced.empty()) ::syscall(SYS_rename, it->replaced.c_str(), it->to.c_str());
  }
}

// A sync of a file or a directory, which syncs the file's name or all names in the directory.
void KeepNames(State& state, const std::string& synced) {
  std::erase_if(state.renamed, [&](const Renamed& one) {
    const bool kept = one.to == synced || DirectoryOf(one.to) == synced;
    if (kept) ::syscall(SYS_unlinkat, AT_FDCWD, one.replaced.c_str(), 0);
    return kept;
  });
}

// Another name, beside the directory, for the file that is about to lose its own; "" without one.
std::string KeepAside(State& state, const std::string& path) {
  if (FileAt(path) == 0) return "";
  std::string aside = state.root + ".replaced-" + std::to_string(++state.replaced);
  ::syscall(SYS_unlinkat, AT_FDCWD, aside.c_str(), 0);
  ::syscall(SYS_linkat, AT_FDCWD, path.c_str(), AT_FDCWD, aside.c_str(), 0);
  return aside;
}

[[noreturn]] void Die() {
  ::kill(::getpid(), SIGKILL);
  while (true) ::pause();
}

// Nothing is there, and so zeros are read.
void Blank(const std::string& path, off_t from, off_t to) {
  const int fd = static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path.c_str(), O_WRONLY));
  if (fd < 0) return;
  const std::string zeros(static_cast<size_t>(to - from), '\0');
  ::syscall(SYS_pwrite64, fd, zeros.data(), zeros.size(), from);
  ::syscall(SYS_close, fd);
}

[[noreturn]] void LosePower(const State& state) {
  for (const auto& [path, size] : state.synced) {
    if (SizeOf(path) > size) ::syscall(SYS_truncate, path.c_str(), size);
  }
  for (const auto& [path, ranges] : state.lost) {
    for (const auto& [from, to] : ranges) Blank(path, from, std::min(to, SizeOf(path)));
  }
  if (!state.plan.keeps_names) TakeNamesBack(state);
  Die();
}

// Whether the change number `n` is one of those that fail by chance, and how.
bool FailsByChance(State& state, uint64_t n) {
  constexpr uint64_t kMostInARow = 30;
  if (n < state.fails_until) return true;
  if (state.random() % state.plan.one_of != 0) return false;
  state.fails_until = n + (state.random() % 2 == 0 ? 1 : state.random() % kMostInARow);
  constexpr int kErrors[] = {ENOSPC, EDQUOT, EIO};
  state.plan.error = kErrors[state.random() % std::size(kErrors)];
  state.plan.partial = state.random() % 2 == 0;
  return true;
}

// Whether a sync is the one that kLoses is about.
bool Loses(State& state) {
  if (state.plan.fault != Fault::kLoses || state.changes < state.plan.at) return false;
  state.plan.fault = Fault::kNone;
  return true;
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
             ((hit && plan.fault == Fault::kOnce) || (n >= plan.at && plan.fault == Fault::kFull) ||
              (plan.fault == Fault::kOften && FailsByChance(state, n)));
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
    Shared().lost.erase(at);
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
  if (change.counted()) Touch(path, had);
  if (change.fails()) {
    if (Shared().plan.partial) static_cast<void>(call(size / 2));
    errno = Shared().plan.error;
    return -1;
  }
  return call(change.tear() ? size / 2 : size);
}

int Sync(int fd, long number) {
  if (!armed) return static_cast<int>(::syscall(number, fd));
  const std::string path = PathOf(fd);
  const Change change(path, true);
  const bool loses = change.counted() && Loses(Shared());
  const bool fails = loses || change.fails();
  const int result = fails ? -1 : static_cast<int>(::syscall(number, fd));
  if (result == 0) KeepNames(Shared(), path);
  if (!change.counted()) return result;
  std::map<std::string, off_t>& synced = Shared().synced;
  const off_t size = SizeOf(path);
  const auto known = synced.try_emplace(path, size).first;
  // The next sync finds nothing to do there.
  if (fails && known->second < size) Shared().lost[path].emplace_back(known->second, size);
  if (loses && known->second < size) Blank(path, known->second, size);
  if (fails || result == 0) known->second = size;
  if (fails) errno = Shared().plan.error;
  return result;
}

int Close(int fd) {
  const auto call = [&] { return static_cast<int>(::syscall(SYS_close, fd)); };
  if (!armed || (::fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY) return call();
  const std::string path = PathOf(fd);
  State& state = Shared();
  const std::lock_guard lock(state.mutex);
  const auto known = state.synced.find(path);
  const off_t size = SizeOf(path);
  const bool fails = state.plan.fault == Fault::kCloses && Below(state, path) &&
                     path.ends_with(state.plan.suffix) && known != state.synced.end() &&
                     known->second < size;
  if (!fails) return call();
  state.plan.fault = Fault::kNone;
  Blank(path, known->second, size);
  known->second = size;
  static_cast<void>(call());
  errno = state.plan.error;
  return -1;
}

// What is known of what lies below a name, under its new one.
template <typename T>
std::map<std::string, T> Take(std::map<std::string, T>& known, const std::string& old,
                              const std::string& to) {
  std::map<std::string, T> moved;
  for (auto it = known.begin(); it != known.end();) {
    const bool moves = it->first == old || it->first.starts_with(old + "/");
    if (moves) moved[to + it->first.substr(old.size())] = it->second;
    it = moves ? known.erase(it) : std::next(it);
  }
  return moved;
}

template <typename T>
void Move(std::map<std::string, T>& known, const std::string& old, const std::string& to) {
  known.erase(to);
  known.merge(Take(known, old, to));
}

template <typename T>
void Swap(std::map<std::string, T>& known, const std::string& one, const std::string& other) {
  auto first = Take(known, one, other);
  known.merge(Take(known, other, one));
  known.merge(first);
}

int Rename(const char* from, const char* to) {
  if (!armed) return static_cast<int>(::syscall(SYS_rename, from, to));
  const Change change(from, true);
  if (change.fails()) return -1;
  const ino_t file = change.counted() ? FileAt(from) : 0;
  const std::string replaced = file != 0 ? KeepAside(Shared(), to) : "";
  const int result = static_cast<int>(::syscall(SYS_rename, from, to));
  if (result != 0 || !change.counted()) return result;
  if (file != 0) Shared().renamed.push_back({from, to, file, replaced});
  Move(Shared().synced, from, to);
  Move(Shared().lost, from, to);
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
  Swap(Shared().synced, one, other);
  Swap(Shared().lost, one, other);
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
  if (result != 0 || !change.counted()) return result;
  Shared().synced.erase(at);
  Shared().lost.erase(at);
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
  const std::lock_guard lock(Shared().mutex);
  Shared().root = root;
  Shared().plan = plan;
  Shared().random.seed(plan.seed);
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

void CutPower() {
  const std::lock_guard lock(Shared().mutex);
  LosePower(Shared());
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
int close(int fd) { return sonde::broken_disk::Close(fd); }
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
