// TaskProlog: a script of the administrator's, or of the user's (--task-prolog), that slurmstepd
// runs in each task's process, just before that becomes the task's program. No callback of the
// Slurm plugin comes between the two, so the script is started with the task's environment, and
// loads the interposers. What it does is not the task's doing: it is not counted, and before its
// main function the interposers take themselves and libsonde out of its LD_PRELOAD, so that neither
// the script sees them nor the programs that it starts load them.
//
// Thread safety: any thread.
#pragma once

namespace sonde::interpose {

// Whether this process is one: a child of the task's process, which is slurmstepd still.
bool IsTaskProlog();

}  // namespace sonde::interpose
