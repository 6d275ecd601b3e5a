// Opening a task's perf events as root for a daemon that may not; see launcher/launch.h.
//
// The daemon runs as the user and is not trusted: only types that count the task itself are opened;
// every field of perf_event_attr but the event's own is set here; the kernel's part of hardware
// events is left out where the system hides it from users; and no event is opened that would also
// count what others run on a sibling hardware thread.
//
// Thread safety: functions without state.
#pragma once

#include <sys/types.h>

#include <cerrno>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "core/unique_fd.h"
#include "launcher/launch.h"

namespace sonde::launch {

struct TaskEvents {
  std::vector<UniqueFd> fds;  // of those that opened, in order
  std::string results;        // per event, comma-separated: 0 or the errno why it did not open
};

// The events that an 'E' packet asks for.
struct AskedEvents {
  std::vector<PerfEvent> task;
  std::vector<MachineEvent> machine;
};
Result<AskedEvents> ParseEvents(std::string_view packet);

// /proc/sys/kernel/perf_event_paranoid; 2, the kernel's own default, if it cannot be read.
int PerfEventParanoid();

// The kernel's number for entries into system calls, or -errno: EPERM if the step may not count
// them, ENOENT where there is no tracing. While one process has them counted, every system call of
// every process of the machine takes some 30 ns longer; so only a step that has its node to itself
// may count them. `kernel`: /sys/kernel, or a test's.
int64_t SyscallsTracepoint(bool may, const std::string& kernel = "/sys/kernel");

// Opens the events on a task that has not called exec yet: they start counting there and follow
// its threads and children. `syscalls` as SyscallsTracepoint gives it.
TaskEvents OpenEvents(pid_t pid, std::span<const PerfEvent> events, int paranoid,
                      int64_t syscalls = -EPERM);

// The same for events that the site does not let be opened.
TaskEvents RefuseEvents(size_t count);

}  // namespace sonde::launch
