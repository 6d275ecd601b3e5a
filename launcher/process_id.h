// Which process a daemon is, in a way that outlives its number: the kernel gives a number again
// once the process is gone, so the time at which the process started belongs to it.
//
// It is a value and no descriptor, because some releases of Slurm run a plugin's callbacks in
// children that share slurmstepd's memory but not its descriptors: a descriptor that one child
// opens is not there in the next.
//
// Thread safety: functions without state.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "launcher/lifeline.h"

namespace sonde::launch {

struct ProcessId {
  pid_t pid = 0;       // 0: none
  uint64_t start = 0;  // clock ticks since boot, as field 22 of /proc/PID/stat
};

// The environment of what a daemon starts names the daemon by this variable, so that what is left
// can be told from the user's other processes when the daemon was killed and could not end it.
inline constexpr const char* kChildOf = "SONDE_CHILD_OF";
std::string NameOf(const ProcessId& process);

// The process that has this number now; none if there is no such process.
ProcessId Identify(pid_t pid);

// True once the process is gone, or if there is none; false at the deadline.
bool WaitForEnd(const ProcessId& process, const Deadline& deadline);

// Ends the leader of a session at once, and whatever is left in the session.
void KillSession(const ProcessId& leader);
// Kills the user's orphans in slurmstepd's control group that began when `daemon` did, or later,
// when the daemon has ended, and waits until they are gone. Called by slurmstepd. False if it has
// no control group (version 2) of its own: then no process is killed. Where nothing is left it
// reads two files, and one for each process in the group.
bool KillLeftInGroup(const ProcessId& daemon, uid_t user, const Deadline& deadline);
// Kills the user's processes that name the daemon in kChildOf, when the daemon has ended, and waits
// for their children to show. Looks at the environment of orphans only, as it makes a process for
// each. Takes 200 ms longer than it may if a user keeps the kernel from reading an environment.
void KillOrphans(const ProcessId& daemon, uid_t user, const Deadline& deadline);

}  // namespace sonde::launch
