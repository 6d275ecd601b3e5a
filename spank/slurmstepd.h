// What the plugin has in slurmstepd.
//
// Some releases run callbacks in children of slurmstepd that share its memory and copy its
// descriptors, so what they change here stays changed, but descriptors must not be closed there:
// only slurm_spank_exit does that.
//
// Thread safety: Slurm's one thread that calls the plugin.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <cstdint>

#include "spank/step_daemon.h"
#include "spank/task_counters.h"

namespace sonde::spank {

struct StepdContext {
  StepDaemon step_daemon;
  TaskCounters counters;
  uint32_t tasks_ended = 0;
  pid_t stepd = 0;           // slurmstepd itself, not a child that runs a callback for it
  rusage children_before{};  // what its children had used when it last waited for a task
};

}  // namespace sonde::spank
