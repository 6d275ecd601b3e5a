#include "daemon/collect/counters/probe.h"

#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/unique_fd.h"

namespace sonde::collect {

Status TryEvent(const launch::PerfEvent& event) {
  perf_event_attr attr = {};
  attr.size = sizeof(attr);
  attr.type = event.type;
  attr.config = event.config;
  attr.config1 = event.config1;
  attr.config2 = event.config2;
  attr.disabled = 1;
  attr.exclude_kernel = 1;
  attr.exclude_hv = 1;
  const UniqueFd fd(
      static_cast<int>(syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC)));
  if (fd) return {};
  const int error = errno;
  const bool absent = error == ENOENT || error == EOPNOTSUPP || error == ENODEV;
  return {absent ? Code::kUnsupported : Code::kPermission, WhyNotCounted(error)};
}

std::string WhyNotCounted(int error) {
  switch (error) {
    case ENOENT:
    case EOPNOTSUPP:
    case ENODEV:
      return "this machine has no such counters, as is common in virtual machines";
    case EACCES:
    case EPERM:
      return "not permitted here (kernel.perf_event_paranoid, and perf_events in sonde.conf)";
    case EINVAL:
      return "not with the others of its group, or not on this processor";
    default:
      return std::strerror(error);
  }
}

}  // namespace sonde::collect
