#include "libclient/io/filesystems.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "libclient/interpose/keep_errno.h"
#include "libclient/io/mounts.h"

namespace sonde::io {

constinit State state = State::kOff;
constinit Filesystem filesystems[kFilesystems] = {};
constinit uint8_t descriptors[kDescriptors] = {};

namespace {

// Filesystem::state; 0 while it is looked up.
constexpr uint8_t kCounted = 1, kIgnored = 2;

using interpose::KeepErrno;
using interpose::Visit;

// By the system calls: the library's functions are interposed.
bool Stat(const char* path, struct stat* info) {
  return syscall(SYS_newfstatat, AT_FDCWD, path, info, 0) == 0;
}
bool Stat(int fd, struct stat* info) { return syscall(SYS_fstat, fd, info) == 0; }

bool HasFiles(const struct stat& info) { return S_ISREG(info.st_mode) || S_ISDIR(info.st_mode); }

uint8_t KindOf(const Filesystem* filesystem) {
  if (filesystem == nullptr) return kNone;
  return static_cast<uint8_t>(kFirst + (filesystem - filesystems));
}

Filesystem* Counted(Filesystem& filesystem) {
  return __atomic_load_n(&filesystem.state, __ATOMIC_ACQUIRE) == kCounted ? &filesystem : nullptr;
}

// --- Directories of paths

// A direct-mapped cache of directories: the upper bits of a path's hash, and its kind in the lower
// 8. Two directories that collide cost a look at the filesystem each time.
constexpr size_t kDirectories = 256;
constinit uint64_t directories[kDirectories] = {};
constinit uint64_t moves = 0;

uint64_t Hash(const char* text, size_t size, uint64_t seed) {
  uint64_t hash = seed ^ (size * 0x9e3779b97f4a7c15);
  while (size > 0) {
    uint64_t part = 0;
    const size_t step = size < 8 ? size : 8;
    memcpy(&part, text, step);
    hash = (hash ^ part) * 0xff51afd7ed558ccd;
    hash ^= hash >> 32;
    text += step;
    size -= step;
  }
  return hash;
}

// The directory of a path, its last slash included; "" for a name alone.
size_t DirectoryLength(const char* path) {
  const char* slash = strrchr(path, '/');
  return slash == nullptr ? 0 : static_cast<size_t>(slash - path) + 1;
}

Filesystem* LookUp(const char* path, size_t length, uint64_t& place, uint64_t hash) {
  char directory[1024] = ".";
  if (length >= sizeof(directory)) return nullptr;
  if (length > 0) {
    memcpy(directory, path, length);
    directory[length] = '\0';
  }
  struct stat info;
  if (!Stat(directory, &info)) return nullptr;
  Filesystem* found = OfDevice(info.st_dev, AT_FDCWD, directory);
  __atomic_store_n(&place, (hash & ~uint64_t{0xff}) | KindOf(found), __ATOMIC_RELAXED);
  return found;
}

}  // namespace

Filesystem* OfDevice(uint64_t device, int dirfd, const char* path) {
  const uint64_t key = device + 1;
  for (Filesystem& filesystem : filesystems) {
    uint64_t found = __atomic_load_n(&filesystem.key, __ATOMIC_ACQUIRE);
    if (found == 0 && __atomic_compare_exchange_n(&filesystem.key, &found, key, false,
                                                  __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
      const KeepErrno keep;
      const bool mounted = FindMount(device, dirfd, path, filesystem.type, filesystem.mount);
      __atomic_store_n(&filesystem.state, mounted ? kCounted : kIgnored, __ATOMIC_RELEASE);
      return mounted ? &filesystem : nullptr;
    }
    // Another thread may be looking it up: this call is not counted then.
    if (found == key) return Counted(filesystem);
  }
  return nullptr;
}

Filesystem* Classify(int fd) {
  const KeepErrno keep;
  struct stat info;
  if (!Stat(fd, &info)) return nullptr;
  Filesystem* found = HasFiles(info) ? OfDevice(info.st_dev, fd, "") : nullptr;
  __atomic_store_n(&descriptors[fd], KindOf(found), __ATOMIC_RELAXED);
  return found;
}

Filesystem* Opened(int fd) {
  return static_cast<unsigned>(fd) < kDescriptors ? Classify(fd) : nullptr;
}

void Forget(unsigned first, unsigned last) {
  for (unsigned fd = first; fd <= last && fd < kDescriptors; ++fd) Forget(static_cast<int>(fd));
}

Filesystem* OfPath(int dirfd, const char* path) {
  if (path == nullptr) return nullptr;
  const bool absolute = path[0] == '/';
  if (!absolute && dirfd != AT_FDCWD) return OfDescriptor(dirfd);
  const size_t length = DirectoryLength(path);
  const uint64_t seed = absolute ? 0 : __atomic_load_n(&moves, __ATOMIC_RELAXED) + 1;
  const uint64_t hash = Hash(path, length, seed);
  uint64_t& place = directories[hash >> 56];
  const uint64_t known = __atomic_load_n(&place, __ATOMIC_RELAXED);
  if (known != 0 && ((known ^ hash) & ~uint64_t{0xff}) == 0) {
    const auto kind = static_cast<uint8_t>(known);
    return kind < kFirst ? nullptr : &filesystems[kind - kFirst];
  }
  const KeepErrno keep;
  return LookUp(path, length, place, hash);
}

void Moved() { __atomic_fetch_add(&moves, 1, __ATOMIC_RELAXED); }

bool Rejoin() {
  const KeepErrno keep;
  const Visit visit;
  if (!visit.good()) return false;
  const bool good = sonde_init() == SONDE_OK;
  __atomic_store_n(&state, good ? State::kOn : State::kOff, __ATOMIC_RELEASE);
  return good;
}

// Two threads may do this at once: both get the same metrics.
bool Register(Filesystem& filesystem, Api api, Operation operation) {
  static constexpr const char* kApiNames[] = {"posix", "stdio"};
  static constexpr const char* kOperationNames[] = {"open", "close", "read",    "write",
                                                    "sync", "seek",  "metadata"};
  const KeepErrno keep;
  const Visit visit;
  if (!visit.good()) return false;
  const sonde_tag_t tags[] = {{"api", kApiNames[api]},
                              {"fstype", filesystem.type},
                              {"mountpoint", filesystem.mount},
                              {"operation", kOperationNames[operation]}};
  Counters& counters = filesystem.counters[api][operation];
  counters.calls = interpose::Counter(interpose::kIoCalls, tags, 4);
  counters.seconds = interpose::Counter(interpose::kIoSeconds, tags, 4);
  if (counters.calls == nullptr && sonde_init() != SONDE_OK) {
    // No daemon: from now on calls are passed on at once.
    __atomic_store_n(&state, State::kOff, __ATOMIC_RELEASE);
    return false;
  }
  if (operation == kRead || operation == kWrite) {
    const bool read = operation == kRead;
    counters.bytes =
        interpose::Counter(read ? interpose::kIoReadBytes : interpose::kIoWrittenBytes, tags, 3);
    counters.sizes = interpose::Histogram(interpose::kIoSizeBytes, tags, 4);
  }
  __atomic_store_n(&counters.ready, true, __ATOMIC_RELEASE);
  return true;
}

}  // namespace sonde::io
