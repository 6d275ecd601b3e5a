// Which filesystem a call is for, and the metrics of each.
//
// A descriptor's filesystem is found by its device when it is opened, or when it is used first; a
// table keeps it until the descriptor is closed. Not counted are descriptors that are no file or
// directory (sockets, pipes, terminals, devices), and files on no mount that /proc/self/mountinfo
// names (memfd, such as libsonde's).
//
// Nothing here is freed, and nothing locked: filesystems are claimed by compare-and-swap, so every
// function may be called from any thread and in a signal handler. errno is kept.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "libclient/interpose/telemetry.h"

namespace sonde::io {

enum Api : uint8_t { kPosix, kStdio, kApis };
enum Operation : uint8_t { kOpen, kClose, kRead, kWrite, kSync, kSeek, kMetadata, kOperations };

// The metrics of one operation on one filesystem, registered at the first such operation.
struct Counters {
  bool ready;  // atomic
  sonde_metric_t* calls;
  sonde_metric_t* seconds;
  sonde_metric_t* bytes;
  sonde_metric_t* sizes;
};

struct Filesystem {
  uint64_t key;   // atomic: its device + 1; 0: free
  uint8_t state;  // atomic; see filesystems.cc
  char type[33];
  char mount[129];
  Counters counters[kApis][kOperations];
};

enum State : uint8_t {
  kOff,     // everything is passed on
  kOn,      // counted
  kForked,  // the child of a process that counts: counts from the first data it moves on
};
extern State state;  // atomic

inline constexpr int kDescriptors = 65536;  // higher ones are not counted
inline constexpr size_t kFilesystems = 64;
inline constexpr uint8_t kUnknown = 0, kNone = 1, kFirst = 2;  // + index
extern Filesystem filesystems[kFilesystems];
extern uint8_t descriptors[kDescriptors];  // atomic

inline bool On() { return __atomic_load_n(&state, __ATOMIC_RELAXED) == State::kOn; }

// Looks at the descriptor; nullptr if it is not counted.
Filesystem* Classify(int fd);

// In the child of a fork: attaches it to the daemon.
bool Rejoin();

inline Filesystem* OfDescriptor(int fd) {
  if (static_cast<unsigned>(fd) >= kDescriptors) return nullptr;
  const uint8_t kind = __atomic_load_n(&descriptors[fd], __ATOMIC_RELAXED);
  if (__builtin_expect(kind >= kFirst, 1)) return &filesystems[kind - kFirst];
  return kind == kNone ? nullptr : Classify(fd);
}

inline void Forget(int fd) {
  if (static_cast<unsigned>(fd) < kDescriptors) {
    __atomic_store_n(&descriptors[fd], kUnknown, __ATOMIC_RELAXED);
  }
}
void Forget(unsigned first, unsigned last);

// For a descriptor that has just been opened; nullptr also for a failed open.
Filesystem* Opened(int fd);

// The filesystem with the directory that holds `path`, from memory where it was looked up before.
// Relative paths with a dirfd are taken to be on that directory's filesystem.
Filesystem* OfPath(int dirfd, const char* path);

// The filesystem of a device, as stat() gave it for `path`.
Filesystem* OfDevice(uint64_t device, int dirfd, const char* path);

// The working directory has changed.
void Moved();

// Registers the metrics; false if that cannot be done now.
bool Register(Filesystem& filesystem, Api api, Operation operation);

}  // namespace sonde::io
