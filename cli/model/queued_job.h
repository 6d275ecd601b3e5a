// A job in Slurm's queue, as scontrol(1) describes it.
//
// Thread safety: functions without state. QueuedJobOf waits for scontrol.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/status.h"

namespace sonde::cli {

struct QueuedJob {
  std::string id;
  std::string name;
  std::string command;  // of a batch job: its script's path; "": it has none
  uint32_t nodes = 0;
  uint32_t tasks = 0;
  uint32_t cpus_per_task = 0;
  double time_limit = 0;  // seconds; 0: none
};

// Whether the text is one that can only be a job's id: digits, perhaps with "_TASK".
bool IsJobId(std::string_view text);
// kNotFound: no such job is in the queue; kUnsupported: there is no Slurm here.
Result<QueuedJob> QueuedJobOf(const std::string& id);
// The first job of what `scontrol show job` prints.
Result<QueuedJob> ParseQueuedJob(std::string_view text);

// "30", "30:00", "1:30:00", "2-0", "2-12:00", "2-12:00:00", as sbatch's --time takes it: seconds.
// 0 for UNLIMITED; -1 for anything else.
double ParseTimeLimit(std::string_view text);

}  // namespace sonde::cli
