// Descriptors that a new process must not have: libraries open some that are not closed on exec,
// libfabric's providers among them, so whoever makes a process closes all but those it is meant to
// have.
//
// Both make system calls only, and say nothing of failures, so the new process itself can call them
// after fork, vfork or clone.
//
// Thread safety: functions without state.
#pragma once

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace sonde {

inline constexpr int kLastDescriptor = 0x7fffffff;

namespace close_descriptors {

inline constexpr unsigned kOnExec = 4;  // CLOSE_RANGE_CLOEXEC

inline bool InKernel(int first, int last, unsigned flags) {
#ifdef SYS_close_range
  return ::syscall(SYS_close_range, first, last, flags) == 0;
#else
  return false;
#endif
}

// For kernels without that call.
inline int EndOfTable(int last) {
  constexpr rlim_t kMost = 65536;
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const auto end = static_cast<int>(limit.rlim_cur < kMost ? limit.rlim_cur : kMost);
  return last < end ? last + 1 : end;
}

}  // namespace close_descriptors

// From `first` to `last`, both included.
inline void CloseDescriptors(int first, int last = kLastDescriptor) {
  if (first > last || close_descriptors::InKernel(first, last, 0)) return;
  const int end = close_descriptors::EndOfTable(last);
  for (int fd = first; fd < end; ++fd) ::close(fd);
}

// The same, when this process becomes another program.
inline void CloseDescriptorsOnExec(int first, int last = kLastDescriptor) {
  if (first > last || close_descriptors::InKernel(first, last, close_descriptors::kOnExec)) return;
  const int end = close_descriptors::EndOfTable(last);
  for (int fd = first; fd < end; ++fd) {
    const int flags = ::fcntl(fd, F_GETFD);
    if (flags >= 0) ::fcntl(fd, F_SETFD, flags | FD_CLOEXEC);
  }
}

}  // namespace sonde
