// Makes a process that becomes a program at once, and is nobody's child but init's. Or one that
// tries, for its launcher, what may take for ever.
//
//   launcher  --clone-->  helper  --clone-->  new process
//   waits for a limited   waits in the        becomes what it is to be, executes the program
//   time                  kernel, then ends
//
// Both share the launcher's memory until the program is executed: copying the page tables of srun
// or slurmstepd, twice for each daemon, would cost more than all else at a step's start.
//
// Whoever waits in the kernel for the new process, as vfork() does, can be held up: by the job's
// user, who may stop the process once it is the user's, and by a file system that does not answer
// when the program is opened. So only the helper waits there. It keeps the launcher's ids: where
// the launcher is root, the user cannot touch it. Its end says that the launcher has its memory for
// itself again. If that takes too long, the new process is killed.
//
// The flag that says whether memory may be dumped (PR_SET_DUMPABLE) is shared, too. Changes of ids
// change the flag, and the new process may clear it. When the launcher has its memory for itself
// again the flag is as before; but 2 (fs.suid_dumpable) cannot be set, and stays as the new process
// left it. So does any flag if one of the two hangs in the kernel: the new process may be another
// user's, who could look into the launcher's memory.
//
// For the kernel the new process is one in vfork(): otherwise the launcher's oom_score_adj would
// follow the new process's, and the launcher would be killed with it when memory is short.
//
// Thread safety: may be called while other threads run. All signals are blocked for the calling
// thread, so that no handler of its process runs in the others. The three share this thread's
// errno: the launcher does not touch it while the others run.
#pragma once

#include <sys/types.h>

#include <chrono>

#include "core/status.h"

namespace sonde::launch {

// What the new process could not do, and errno.
struct NotExecuted {
  int step = 0;
  int error = 0;
};

// Runs in the new process, with all signals blocked: executes the program, or returns why it could
// not, or else what it was to find out. It must be async-signal-safe and write to nothing but its
// own stack.
using Execute = NotExecuted (*)(const void* plan);

struct Spawned {
  // kExecuted, or somebody else has killed it before: the helper goes on in either case, and cannot
  // tell them apart. Who talks with the program then finds nobody: a lifeline ends without a word.
  // kKilled: it took too long.
  enum class End { kExecuted, kNotExecuted, kKilled };
  End end;
  pid_t pid;  // the new process's
  NotExecuted failed;
};

// An error is that no process could be made. Takes `most` and 200 ms at the longest.
Result<Spawned> Spawn(Execute execute, const void* plan, std::chrono::milliseconds most);

}  // namespace sonde::launch
