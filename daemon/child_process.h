// Starting a program beside a daemon.
//
// A daemon on a node is in the control group of its step, and so is what it starts. Slurm waits
// there for everybody when the step ends, and drains the node if somebody stays. So a child ends
// with the daemon, however that ends: the kernel kills it, unless its program has privileges of its
// own (setuid, file capabilities); EndChildren kills those as well, but not one that has become
// another user. One that may stay longer, as beside srun, says so.
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
  // Which of our descriptors it has, and as which number; the numbers ascend. What is closed on
  // exec is closed there.
  std::vector<std::pair<int, int>> descriptors;
  bool silent = false;           // its standard output and error are /dev/null
  bool own_group = false;        // it leads a process group, to be killed as a whole
  bool default_signals = false;  // a daemon ignores signals of its job; it does not
  bool may_outlive_us = false;

  static std::vector<std::string> CurrentEnvironment();
};

// Its number. An error says why it could not be started.
Result<pid_t> StartChild(const ChildProgram& child);

// What children leave behind when they end becomes a child of this process, so that EndChildren
// finds it.
void AdoptOrphans();
// Kills all children of this process and theirs, and waits until they are gone, 200 ms at most.
void EndChildren();

}  // namespace sonde
