#include "launcher/placement.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <cstddef>

#include "core/text/cpu_list.h"

namespace sonde::launch {
namespace {

constexpr uint32_t kMostProcessors = 65536;
constexpr size_t kBits = sizeof(unsigned long) * CHAR_BIT;

// slurmstepd protects itself from the kernel's out-of-memory killer, and its children inherit that.
void SetOomScore(int score) {
  const int fd = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;
  char digits[8];
  size_t at = sizeof(digits);
  do {
    digits[--at] = static_cast<char>('0' + score % 10);
    score /= 10;
  } while (score > 0 && at > 0);
  [[maybe_unused]] const ssize_t done = ::write(fd, digits + at, sizeof(digits) - at);
  ::close(fd);
}

}  // namespace

std::vector<unsigned long> ProcessorMask(std::string_view list) {
  std::vector<unsigned long> mask;
  bool good = true;
  good &= ForEachRange(list, [&](uint32_t first, uint32_t last) {
    if (last >= kMostProcessors) {
      good = false;
      return;
    }
    if (mask.size() <= last / kBits) mask.resize(last / kBits + 1);
    for (uint32_t i = first; i <= last; ++i) mask[i / kBits] |= 1ul << (i % kBits);
  });
  if (!good) mask.clear();
  return mask;
}

// By system calls, as the C library's functions may take locks.
void Apply(const Placement& placement) {
  SetOomScore(placement.oom_score);
  if (placement.nice != 0) {
    // The kernel gives 20 less the value, so that it is never negative.
    const long now = 20 - ::syscall(SYS_getpriority, PRIO_PROCESS, 0);
    ::syscall(SYS_setpriority, PRIO_PROCESS, 0, now + placement.nice);
  }
  if (placement.memory != 0) {
    const rlimit limit{placement.memory, placement.memory};
    ::setrlimit(RLIMIT_DATA, &limit);
  }
  if (!placement.processors.empty()) {
    ::syscall(SYS_sched_setaffinity, 0, placement.processors.size() * sizeof(unsigned long),
              placement.processors.data());
  }
}

}  // namespace sonde::launch
