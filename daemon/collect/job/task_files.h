// What stands in /proc/PID: stat, io, status, and the children of its threads (proc(5)).
//
// A process may give itself any name, blanks, brackets and newlines included; nothing here trusts
// it.
//
// Thread safety: functions without state.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <string_view>

#include "daemon/collect/read/parse.h"

namespace sonde::collect {

// What a process counts. The kernel adds a child's to its parent's when the parent waits for it.
enum TaskCounter : uint8_t {
  kUserTicks,
  kSystemTicks,
  kMinorFaults,
  kMajorFaults,
  kCallReadBytes,   // rchar
  kCallWriteBytes,  // wchar
  kReadCalls,       // syscr
  kWriteCalls,      // syscw
  kReadBytes,
  kWriteBytes,
  kCancelledBytes,  // cancelled_write_bytes
};
inline constexpr size_t kTaskCounters = 11;
inline constexpr size_t kFirstIoCounter = kCallReadBytes;
using TaskCounters = std::array<double, kTaskCounters>;

// A process's name as the kernel keeps it: at most 15 bytes, whatever they are, and zeros.
using ProcessName = std::array<char, 16>;

struct TaskStat {
  ProcessName name{};
  char state = '?';
  pid_t parent = 0;
  uint64_t start = 0;  // in ticks since boot: tells one holder of a pid from the next
  uint64_t threads = 0;
  uint64_t virtual_bytes = 0;
  uint64_t resident_pages = 0;
  double processor = kMissing;     // that its main thread ran on last
  double waited_minor_faults = 0;  // of children that were waited for; also in `counters`
  TaskCounters counters{};         // waited-for children included; the I/O counters stay 0
};

// False, and `stat` undefined, if the text is cut short or not a stat file.
bool ParseTaskStat(std::string_view text, TaskStat& stat);
// Fills the I/O counters. False, and `counters` unchanged, if one is missing.
bool ParseTaskIo(std::string_view text, TaskCounters& counters);
// VmHWM of status in bytes, or kMissing.
double ParsePeakResident(std::string_view text);

// Calls f(pid) for every process of a children file.
template <typename F>
void ForEachChild(std::string_view text, F&& f) {
  uint64_t pid = 0;
  for (Cursor at(text); at.Unsigned(pid);) {
    if (pid > 0 && pid <= INT32_MAX) f(static_cast<pid_t>(pid));
  }
}

}  // namespace sonde::collect
