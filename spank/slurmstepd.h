// The plugin's state in slurmstepd.
//
// Some releases run callbacks in children of slurmstepd that share its memory and copy its
// descriptors. So changes that callbacks make to this state stay, but callbacks must not close
// descriptors: only slurm_spank_exit and the plugin's end do that.
//
// Thread safety: Slurm's one thread that calls the plugin.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <cstdint>
#include <string>

#include "launcher/site/job_memory.h"
#include "launcher/site/node_counters.h"
#include "spank/step_daemon.h"
#include "spank/task_counters.h"

namespace sonde::spank {

struct StepdContext {
  StepDaemon step_daemon;
  std::string step;               // JOB.STEP
  launch::NodeCounting counting;  // what becomes of the node's daemons
  bool alone = false;             // nobody else is on the node; known at level 3 and above
  TaskCounters counters;
  launch::JobMemory job_memory;  // of a step that has no daemon; found before there is a task
  bool kept_room = false;        // for daemons of other steps
  uint32_t tasks_ended = 0;
  pid_t stepd = 0;           // slurmstepd itself, not a child that runs a callback for it
  rusage children_before{};  // used by stepd's children when it last waited for a task
};

}  // namespace sonde::spank
