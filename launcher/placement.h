// Where a daemon runs and how much it may take, as the site decides.
//
// Thread safety: values and functions without state.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace sonde::launch {

struct Placement {
  // The kernel kills the process with the highest score first when memory is short (0 to 1000).
  // Where a job is at its limit the daemon goes, and the application has what it would have had
  // without it.
  int oom_score = 1000;
  int nice = 0;         // added to the launcher's
  uint64_t memory = 0;  // bytes of private memory (RLIMIT_DATA); 0: as the launcher
  // A bit for each processor, as sched_setaffinity() takes them; empty: as the launcher.
  std::vector<unsigned long> processors;
};

// The bits of a list such as "0-3,8"; empty if the text is no list or names a processor above
// 65535.
std::vector<unsigned long> ProcessorMask(std::string_view list);

// Applies it to this process. What the kernel refuses stays as it is. Async-signal-safe: a child
// calls it before exec.
void Apply(const Placement& placement);

}  // namespace sonde::launch
