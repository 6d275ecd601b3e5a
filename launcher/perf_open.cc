#include "launcher/perf_open.h"

#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>

#include "launcher/read_file.h"

namespace sonde::launch {
namespace {

bool CountsTheTaskItself(const PerfEvent& event) {
  switch (event.type) {
    case PERF_TYPE_HARDWARE:
    case PERF_TYPE_SOFTWARE:
    case PERF_TYPE_HW_CACHE:
      return true;
    case PERF_TYPE_RAW:
#if defined(__x86_64__) || defined(__i386__)
      // Intel's AnyThread bit: the kernel grants it to root, for whom we ask.
      return (event.config & (1u << 21)) == 0;
#else
      return true;
#endif
    default:
      return false;
  }
}

perf_event_attr Attributes(const PerfEvent& event, int paranoid) {
  perf_event_attr attr{};
  attr.size = sizeof(attr);
  attr.type = event.type;
  attr.config = event.config;
  attr.config1 = event.config1;
  attr.config2 = event.config2;
  attr.disabled = 1;
  attr.enable_on_exec = 1;
  attr.inherit = 1;
  attr.read_format =
      PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  // System calls are made by the task, wherever the kernel counts them.
  if (event.type == PERF_TYPE_TRACEPOINT) return attr;
  // Software events such as context switches happen in the kernel and are shown to their owner in
  // /proc anyway.
  if (paranoid >= 2 && event.type != PERF_TYPE_SOFTWARE) {
    attr.exclude_kernel = 1;
    attr.exclude_hv = 1;
  }
  return attr;
}

// The descriptor, or -errno.
int Open(pid_t pid, const PerfEvent& event, int group, int paranoid, int64_t syscalls) {
  const bool counts_syscalls = event.type == PERF_TYPE_TRACEPOINT && event.config == kSyscalls;
  if (!counts_syscalls && !CountsTheTaskItself(event)) return -EACCES;
  if (counts_syscalls && syscalls < 0) return static_cast<int>(syscalls);
  perf_event_attr attr = Attributes(event, paranoid);
  if (counts_syscalls) attr.config = static_cast<uint64_t>(syscalls);
  for (;;) {
    const long fd = ::syscall(SYS_perf_event_open, &attr, pid, -1, group, PERF_FLAG_FD_CLOEXEC);
    if (fd >= 0) return static_cast<int>(fd);
    // A kernel older than our headers may not know the newest attributes; we use none of them.
    if (errno != E2BIG || attr.size == PERF_ATTR_SIZE_VER1) return -errno;
    attr.size = PERF_ATTR_SIZE_VER1;
  }
}

// A count in one byte, followed by that many T.
template <typename T>
bool TakeList(std::string_view& packet, size_t most, std::vector<T>& list) {
  if (packet.empty()) return false;
  const size_t count = static_cast<unsigned char>(packet[0]);
  if (count > most || packet.size() < 1 + count * sizeof(T)) return false;
  list.resize(count);
  if (count > 0) std::memcpy(list.data(), packet.data() + 1, count * sizeof(T));
  packet.remove_prefix(1 + count * sizeof(T));
  return true;
}

}  // namespace

Result<AskedEvents> ParseEvents(std::string_view packet) {
  const Status bad(Code::kInvalid, "sonded sent a malformed list of events");
  if (packet.empty() || packet[0] != kEvents) return bad;
  packet.remove_prefix(1);
  AskedEvents asked;
  if (!TakeList(packet, kMaxEvents, asked.task) ||
      !TakeList(packet, kMaxMachineEvents, asked.machine) || !packet.empty()) {
    return bad;
  }
  return asked;
}

int PerfEventParanoid() {
  const Result<std::string> text = ReadFile("/proc/sys/kernel/perf_event_paranoid");
  int value = 2;
  if (text.ok()) std::from_chars(text->data(), text->data() + text->size(), value);
  return value;
}

int64_t SyscallsTracepoint(bool may, const std::string& kernel) {
  if (!may) return -EPERM;
  for (const char* tracing : {"/tracing", "/debug/tracing"}) {
    const Result<std::string> text =
        ReadFile(kernel + tracing + "/events/raw_syscalls/sys_enter/id");
    int64_t id = 0;
    if (text.ok() &&
        std::from_chars(text->data(), text->data() + text->size(), id).ec == std::errc() &&
        id > 0) {
      return id;
    }
  }
  return -ENOENT;
}

TaskEvents OpenEvents(pid_t pid, std::span<const PerfEvent> events, int paranoid,
                      int64_t syscalls) {
  TaskEvents opened;
  int leader = -1;
  for (const PerfEvent& event : events) {
    if (event.leader != 0) leader = -1;
    const int fd = Open(pid, event, leader, paranoid, syscalls);
    if (fd >= 0) {
      opened.fds.emplace_back(fd);
      if (leader < 0) leader = fd;
    }
    if (!opened.results.empty()) opened.results += ',';
    opened.results += std::to_string(fd >= 0 ? 0 : -fd);
  }
  return opened;
}

TaskEvents RefuseEvents(size_t count) {
  TaskEvents refused;
  for (size_t i = 0; i < count; ++i) {
    refused.results += (i == 0 ? "" : ",") + std::to_string(EACCES);
  }
  return refused;
}

}  // namespace sonde::launch
