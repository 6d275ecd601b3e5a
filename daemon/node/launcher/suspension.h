// Whether the tasks of this node are suspended: `scontrol suspend`, gang scheduling, preemption.
//
// Slurm freezes the control groups of the job's tasks or, without control groups, sends SIGSTOP.
// Where srun runs in a batch script, the head beside it is frozen as well, while the daemons of the
// nodes go on. A head that says nothing is then neither dead nor slow, and nobody may go on in its
// place: after the suspension there would be two.
//
// Thread safety: the loop's thread only.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>

#include "core/time.h"

namespace sonde::node {

class Suspension {
 public:
  // How often a node needs to look while nothing depends on the answer.
  static constexpr Nanos kInterval = kSecond;

  struct Options {
    std::string proc = "/proc";
    std::string cgroups = "/sys/fs/cgroup";
  };
  explicit Suspension(Options options) : options_(std::move(options)) {}

  void Add(uint32_t rank, pid_t pid) { tasks_[rank] = pid; }
  void Ended(uint32_t rank) { tasks_.erase(rank); }
  // Looks: all tasks that are there are suspended, and there is one.
  bool Holds() const;
  // The rank that tells of it.
  uint32_t first_rank() const { return tasks_.empty() ? 0 : tasks_.begin()->first; }

 private:
  bool IsSuspended(pid_t task) const;
  bool IsFrozen(pid_t task) const;

  const Options options_;
  std::map<uint32_t, pid_t> tasks_;  // by rank
};

}  // namespace sonde::node
