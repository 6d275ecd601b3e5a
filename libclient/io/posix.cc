// The functions of POSIX on descriptors and paths.
//
// Prototypes are those of the calling convention: a function with a variable argument takes it as a
// named one, which on x86-64 and AArch64 (Linux) is passed in the same place.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "libclient/io/call.h"

namespace sonde::io {
namespace {

struct iovec;

template <typename Result, typename... Arguments>
__attribute__((always_inline)) inline Result Transfer(Real& real, Operation operation, int fd,
                                                      Arguments... arguments) {
  Filesystem* const filesystem = ForData(fd);
  if (filesystem == nullptr) return real.Call<Result>(fd, arguments...);
  const uint64_t begin = clock.Now();
  const Result result = real.Call<Result>(fd, arguments...);
  Record(*filesystem, kPosix, operation, clock.Now() - begin, result);
  return result;
}

// For a descriptor, without data.
template <typename Result, typename... Arguments>
__attribute__((always_inline)) inline Result OnDescriptor(Real& real, Operation operation, int fd,
                                                          Arguments... arguments) {
  Filesystem* const filesystem = On() ? OfDescriptor(fd) : nullptr;
  if (filesystem == nullptr) return real.Call<Result>(fd, arguments...);
  const uint64_t begin = clock.Now();
  const Result result = real.Call<Result>(fd, arguments...);
  Record(*filesystem, kPosix, operation, clock.Now() - begin);
  return result;
}

template <typename... Arguments>
__attribute__((always_inline)) inline int Open(Real& real, int dirfd, const char* path,
                                               Arguments... arguments) {
  if (!On()) return real.Call<int>(arguments...);
  return Timed(
      kPosix, kOpen, [&] { return real.Call<int>(arguments...); },
      [&](int fd) { return fd >= 0 ? Opened(fd) : OfPath(dirfd, path); }, kNoBytes);
}

// A call that names a file; `arguments` are all of it.
template <typename Result, typename... Arguments>
__attribute__((always_inline)) inline Result OnPath(Real& real, int dirfd, const char* path,
                                                    Arguments... arguments) {
  if (!On()) return real.Call<Result>(arguments...);
  return Timed(
      kPosix, kMetadata, [&] { return real.Call<Result>(arguments...); },
      [&](Result) { return OfPath(dirfd, path); }, kNoBytes);
}

// stat() and the like tell the device themselves.
template <typename... Arguments>
__attribute__((always_inline)) inline int StatPath(Real& real, int dirfd, const char* path,
                                                   const struct stat* info,
                                                   Arguments... arguments) {
  if (!On()) return real.Call<int>(arguments...);
  return Timed(
      kPosix, kMetadata, [&] { return real.Call<int>(arguments...); },
      [&](int result) -> Filesystem* {
        if (result != 0) return OfPath(dirfd, path);
        const bool file = S_ISREG(info->st_mode) || S_ISDIR(info->st_mode);
        return file ? OfDevice(info->st_dev, dirfd, path) : OfPath(dirfd, path);
      },
      kNoBytes);
}

}  // namespace

// --- Data

#define SONDE_TRANSFER(SYMBOL, OPERATION, PARAMETERS, ...)               \
  SONDE_IO(ssize_t, SYMBOL, PARAMETERS) {                                \
    return Transfer<ssize_t>(real_##SYMBOL, OPERATION, fd, __VA_ARGS__); \
  }

SONDE_TRANSFER(read, kRead, (int fd, void* data, size_t size), data, size)
SONDE_TRANSFER(write, kWrite, (int fd, const void* data, size_t size), data, size)
SONDE_TRANSFER(pread, kRead, (int fd, void* data, size_t size, off_t at), data, size, at)
SONDE_TRANSFER(pread64, kRead, (int fd, void* data, size_t size, off_t at), data, size, at)
SONDE_TRANSFER(pwrite, kWrite, (int fd, const void* data, size_t size, off_t at), data, size, at)
SONDE_TRANSFER(pwrite64, kWrite, (int fd, const void* data, size_t size, off_t at), data, size, at)
SONDE_TRANSFER(readv, kRead, (int fd, const iovec* data, int count), data, count)
SONDE_TRANSFER(writev, kWrite, (int fd, const iovec* data, int count), data, count)
SONDE_TRANSFER(preadv, kRead, (int fd, const iovec* data, int count, off_t at), data, count, at)
SONDE_TRANSFER(preadv64, kRead, (int fd, const iovec* data, int count, off_t at), data, count, at)
SONDE_TRANSFER(pwritev, kWrite, (int fd, const iovec* data, int count, off_t at), data, count, at)
SONDE_TRANSFER(pwritev64, kWrite, (int fd, const iovec* data, int count, off_t at), data, count, at)
SONDE_TRANSFER(preadv2, kRead, (int fd, const iovec* data, int count, off_t at, int flags), data,
               count, at, flags)
SONDE_TRANSFER(preadv64v2, kRead, (int fd, const iovec* data, int count, off_t at, int flags), data,
               count, at, flags)
SONDE_TRANSFER(pwritev2, kWrite, (int fd, const iovec* data, int count, off_t at, int flags), data,
               count, at, flags)
SONDE_TRANSFER(pwritev64v2, kWrite, (int fd, const iovec* data, int count, off_t at, int flags),
               data, count, at, flags)
// With _FORTIFY_SOURCE.
SONDE_TRANSFER(__read_chk, kRead, (int fd, void* data, size_t size, size_t room), data, size, room)
SONDE_TRANSFER(__pread_chk, kRead, (int fd, void* data, size_t size, off_t at, size_t room), data,
               size, at, room)
SONDE_TRANSFER(__pread64_chk, kRead, (int fd, void* data, size_t size, off_t at, size_t room), data,
               size, at, room)

// --- Opening and closing

#define SONDE_OPEN(SYMBOL, PARAMETERS, DIRFD, ...) \
  SONDE_IO(int, SYMBOL, PARAMETERS) { return Open(real_##SYMBOL, DIRFD, path, __VA_ARGS__); }

SONDE_OPEN(open, (const char* path, int flags, mode_t mode), AT_FDCWD, path, flags, mode)
SONDE_OPEN(open64, (const char* path, int flags, mode_t mode), AT_FDCWD, path, flags, mode)
SONDE_OPEN(openat, (int dir, const char* path, int flags, mode_t mode), dir, dir, path, flags, mode)
SONDE_OPEN(openat64, (int dir, const char* path, int flags, mode_t mode), dir, dir, path, flags,
           mode)
SONDE_OPEN(creat, (const char* path, mode_t mode), AT_FDCWD, path, mode)
SONDE_OPEN(creat64, (const char* path, mode_t mode), AT_FDCWD, path, mode)
SONDE_OPEN(__open_2, (const char* path, int flags), AT_FDCWD, path, flags)
SONDE_OPEN(__open64_2, (const char* path, int flags), AT_FDCWD, path, flags)
SONDE_OPEN(__openat_2, (int dir, const char* path, int flags), dir, dir, path, flags)
SONDE_OPEN(__openat64_2, (int dir, const char* path, int flags), dir, dir, path, flags)

SONDE_IO(void*, opendir, (const char* path)) {
  return OnPath<void*>(real_opendir, AT_FDCWD, path, path);
}

// A descriptor that was never used is not looked at now.
SONDE_IO(int, close, (int fd)) {
  const bool known = On() && static_cast<unsigned>(fd) < kDescriptors &&
                     __atomic_load_n(&descriptors[fd], __ATOMIC_RELAXED) >= kFirst;
  if (!known) {
    Forget(fd);
    return real_close.Call<int>(fd);
  }
  Filesystem* const filesystem = OfDescriptor(fd);
  // Before the close: afterwards another thread may open a file with the same number.
  Forget(fd);
  const uint64_t begin = clock.Now();
  const int result = real_close.Call<int>(fd);
  Record(*filesystem, kPosix, kClose, clock.Now() - begin);
  return result;
}

SONDE_IO(int, close_range, (unsigned first, unsigned last, int flags)) {
  Forget(first, last);
  return real_close_range.Call<int>(first, last, flags);
}

SONDE_IO(void, closefrom, (int first)) {
  Forget(first < 0 ? 0 : static_cast<unsigned>(first), ~0u);
  real_closefrom.Call<void>(first);
}

SONDE_IO(int, dup, (int fd)) {
  const int copy = real_dup.Call<int>(fd);
  Forget(copy);
  return copy;
}

SONDE_IO(int, dup2, (int fd, int copy)) {
  if (fd != copy) Forget(copy);
  return real_dup2.Call<int>(fd, copy);
}

SONDE_IO(int, dup3, (int fd, int copy, int flags)) {
  Forget(copy);
  return real_dup3.Call<int>(fd, copy, flags);
}

// --- Descriptors without data

#define SONDE_DESCRIPTOR(RESULT, SYMBOL, OPERATION, PARAMETERS, ...)                      \
  SONDE_IO(RESULT, SYMBOL, PARAMETERS) {                                                  \
    return OnDescriptor<RESULT>(real_##SYMBOL, OPERATION, fd __VA_OPT__(, ) __VA_ARGS__); \
  }

SONDE_DESCRIPTOR(int, fsync, kSync, (int fd))
SONDE_DESCRIPTOR(int, fdatasync, kSync, (int fd))
SONDE_DESCRIPTOR(int, syncfs, kSync, (int fd))
SONDE_DESCRIPTOR(int, sync_file_range, kSync, (int fd, off_t at, off_t size, unsigned flags), at,
                 size, flags)
SONDE_DESCRIPTOR(off_t, lseek, kSeek, (int fd, off_t to, int from), to, from)
SONDE_DESCRIPTOR(off_t, lseek64, kSeek, (int fd, off_t to, int from), to, from)
SONDE_DESCRIPTOR(int, ftruncate, kMetadata, (int fd, off_t size), size)
SONDE_DESCRIPTOR(int, ftruncate64, kMetadata, (int fd, off_t size), size)
SONDE_DESCRIPTOR(int, fallocate, kMetadata, (int fd, int mode, off_t at, off_t size), mode, at,
                 size)
SONDE_DESCRIPTOR(int, fallocate64, kMetadata, (int fd, int mode, off_t at, off_t size), mode, at,
                 size)
SONDE_DESCRIPTOR(int, posix_fallocate, kMetadata, (int fd, off_t at, off_t size), at, size)
SONDE_DESCRIPTOR(int, posix_fallocate64, kMetadata, (int fd, off_t at, off_t size), at, size)
SONDE_DESCRIPTOR(int, fchmod, kMetadata, (int fd, mode_t mode), mode)
SONDE_DESCRIPTOR(int, fstat, kMetadata, (int fd, void* info), info)
SONDE_DESCRIPTOR(int, fstat64, kMetadata, (int fd, void* info), info)

// As programs linked with a C library before 2.33 call it.
SONDE_IO(int, __fxstat, (int version, int fd, void* info)) {
  Filesystem* const filesystem = On() ? OfDescriptor(fd) : nullptr;
  if (filesystem == nullptr) return real___fxstat.Call<int>(version, fd, info);
  return Timed(
      kPosix, kMetadata, [&] { return real___fxstat.Call<int>(version, fd, info); },
      [&](int) { return filesystem; }, kNoBytes);
}
SONDE_IO(int, __fxstat64, (int version, int fd, void* info)) {
  Filesystem* const filesystem = On() ? OfDescriptor(fd) : nullptr;
  if (filesystem == nullptr) return real___fxstat64.Call<int>(version, fd, info);
  return Timed(
      kPosix, kMetadata, [&] { return real___fxstat64.Call<int>(version, fd, info); },
      [&](int) { return filesystem; }, kNoBytes);
}

// --- Paths

#define SONDE_STAT(SYMBOL, PARAMETERS, DIRFD, ...)                  \
  SONDE_IO(int, SYMBOL, PARAMETERS) {                               \
    return StatPath(real_##SYMBOL, DIRFD, path, info, __VA_ARGS__); \
  }

SONDE_STAT(stat, (const char* path, struct stat* info), AT_FDCWD, path, info)
SONDE_STAT(stat64, (const char* path, struct stat* info), AT_FDCWD, path, info)
SONDE_STAT(lstat, (const char* path, struct stat* info), AT_FDCWD, path, info)
SONDE_STAT(lstat64, (const char* path, struct stat* info), AT_FDCWD, path, info)
SONDE_STAT(fstatat, (int dir, const char* path, struct stat* info, int flags), dir, dir, path, info,
           flags)
SONDE_STAT(fstatat64, (int dir, const char* path, struct stat* info, int flags), dir, dir, path,
           info, flags)
SONDE_STAT(__xstat, (int version, const char* path, struct stat* info), AT_FDCWD, version, path,
           info)
SONDE_STAT(__xstat64, (int version, const char* path, struct stat* info), AT_FDCWD, version, path,
           info)
SONDE_STAT(__lxstat, (int version, const char* path, struct stat* info), AT_FDCWD, version, path,
           info)
SONDE_STAT(__lxstat64, (int version, const char* path, struct stat* info), AT_FDCWD, version, path,
           info)
SONDE_STAT(__fxstatat, (int version, int dir, const char* path, struct stat* info, int flags), dir,
           version, dir, path, info, flags)
SONDE_STAT(__fxstatat64, (int version, int dir, const char* path, struct stat* info, int flags),
           dir, version, dir, path, info, flags)

#define SONDE_PATH(SYMBOL, PARAMETERS, DIRFD, ...) \
  SONDE_IO(int, SYMBOL, PARAMETERS) { return OnPath<int>(real_##SYMBOL, DIRFD, path, __VA_ARGS__); }
#define SONDE_READLINK(SYMBOL, PARAMETERS, DIRFD, ...)               \
  SONDE_IO(ssize_t, SYMBOL, PARAMETERS) {                            \
    return OnPath<ssize_t>(real_##SYMBOL, DIRFD, path, __VA_ARGS__); \
  }

SONDE_PATH(statx, (int dir, const char* path, int flags, unsigned mask, void* info), dir, dir, path,
           flags, mask, info)
SONDE_PATH(access, (const char* path, int mode), AT_FDCWD, path, mode)
SONDE_PATH(faccessat, (int dir, const char* path, int mode, int flags), dir, dir, path, mode, flags)
SONDE_PATH(unlink, (const char* path), AT_FDCWD, path)
SONDE_PATH(unlinkat, (int dir, const char* path, int flags), dir, dir, path, flags)
SONDE_PATH(remove, (const char* path), AT_FDCWD, path)
SONDE_PATH(rmdir, (const char* path), AT_FDCWD, path)
SONDE_PATH(mkdir, (const char* path, mode_t mode), AT_FDCWD, path, mode)
SONDE_PATH(mkdirat, (int dir, const char* path, mode_t mode), dir, dir, path, mode)
SONDE_PATH(rename, (const char* path, const char* to), AT_FDCWD, path, to)
SONDE_PATH(renameat, (int dir, const char* path, int dir2, const char* to), dir, dir, path, dir2,
           to)
SONDE_PATH(renameat2, (int dir, const char* path, int dir2, const char* to, unsigned flags), dir,
           dir, path, dir2, to, flags)
SONDE_PATH(link, (const char* path, const char* to), AT_FDCWD, path, to)
SONDE_PATH(linkat, (int dir, const char* path, int dir2, const char* to, int flags), dir, dir, path,
           dir2, to, flags)
SONDE_PATH(symlink, (const char* target, const char* path), AT_FDCWD, target, path)
SONDE_PATH(symlinkat, (const char* target, int dir, const char* path), dir, target, dir, path)
SONDE_READLINK(readlink, (const char* path, char* text, size_t room), AT_FDCWD, path, text, room)
SONDE_READLINK(readlinkat, (int dir, const char* path, char* text, size_t room), dir, dir, path,
               text, room)
SONDE_READLINK(__readlink_chk, (const char* path, char* text, size_t size, size_t room), AT_FDCWD,
               path, text, size, room)
SONDE_PATH(truncate, (const char* path, off_t size), AT_FDCWD, path, size)
SONDE_PATH(truncate64, (const char* path, off_t size), AT_FDCWD, path, size)
SONDE_PATH(chmod, (const char* path, mode_t mode), AT_FDCWD, path, mode)

SONDE_IO(int, chdir, (const char* path)) {
  const int result = real_chdir.Call<int>(path);
  Moved();
  return result;
}
SONDE_IO(int, fchdir, (int fd)) {
  const int result = real_fchdir.Call<int>(fd);
  Moved();
  return result;
}

}  // namespace sonde::io
