// Starting a program beside a daemon.
//
// A daemon on a node is in the control group of its step, and so are the programs it starts. When
// the step ends Slurm waits for every process there, and drains the node if one stays. So a child
// ends with the daemon, however the daemon ends: the kernel kills the child, unless its program has
// privileges of its own (setuid, file capabilities); EndChildren kills those as well, but not one
// that has become another user. If the daemon is killed, slurmstepd ends what children have left
// behind: all of them have the daemon's name in their environment (launch::kChildOf). A child that
// may stay longer, as beside srun, has may_outlive_us.
//
// Thread safety: from the thread that lives as long as the process, which is the loop's; the kernel
// takes the end of the thread that started a child for the end of its parent.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "core/status.h"

namespace sonde {

struct ChildProgram {
  std::string program;                 // a path, or a name that is looked for on the PATH
  std::vector<std::string> arguments;  // argv, argv[0] included
  std::vector<std::string> environment = CurrentEnvironment();  // NAME=VALUE
  // The descriptors of ours that the child gets, each with its number there; the numbers ascend.
  // Beside these it has our standard input, output and error, and no other one.
  std::vector<std::pair<int, int>> descriptors;
  bool silent = false;           // its standard output and error are /dev/null
  bool own_group = false;        // it leads a process group, to be killed as a whole
  bool default_signals = false;  // a daemon ignores signals of its job; it does not
  bool may_outlive_us = false;

  static std::vector<std::string> CurrentEnvironment();
};

// The child's process id. An error says why it could not be started.
Result<pid_t> StartChild(const ChildProgram& child);

// Processes that children leave behind when they end become children of this process, so that
// EndChildren finds them.
void AdoptOrphans();
// Kills all children of this process and theirs, and waits until they are gone, 200 ms at most.
void EndChildren();

}  // namespace sonde
