// How the site lets daemons run, in sonde.conf: daemon_cpus, daemon_nice, daemon_memory,
// daemon_oom_score, memory_allowance, max_heads, perf_events and ask_filesystems. No variable
// overrides them.
//
// Free of dependencies, as site_rules.h is: the plugin applies these lines, the daemon and the
// command check them. The daemon applies ask_filesystems.
//
// Thread safety: values.
#pragma once

#include <cstdint>
#include <string>

#include "core/text/settings.h"

namespace sonde {

struct DaemonSettings {
  // Whether slurmstepd opens perf events of the tasks as root. kFollow: unless the kernel lets
  // users open none themselves (perf_event_paranoid above 2, as Debian and Ubuntu have it); kGrant:
  // always.
  enum class PerfEvents : unsigned char { kFollow, kGrant, kNever };
  PerfEvents perf_events = PerfEvents::kFollow;
  // Of the daemons on nodes: "": where slurmstepd may run; "specialized": where slurmd runs; or a
  // list such as "0,64".
  std::string cpus;
  int nice = 0;                // 0 to 19
  uint64_t memory = 1u << 30;  // bytes; 0: no limit
  int oom_score = 1000;
  // Bytes by which a job's memory limit on a node is raised for each of its steps.
  uint64_t memory_allowance = 64u << 20;
  uint32_t max_heads = 0;  // on one host at a time; 0: no limit
  // Types of filesystems, separated by commas, with '*' for any text, that daemons ask for their
  // space although a process that waits for them may not be killed. "none": none, and profiles do
  // not tell which were not asked.
  std::string ask_filesystems;

  // Whether a line of sonde.conf is for Add.
  static bool Takes(const Setting& line);
  // What is wrong with the line; "" if nothing is. A wrong line does not count.
  std::string Add(const Setting& line);

 private:
  uint32_t seen_ = 0;  // a bit for each key
};

}  // namespace sonde
