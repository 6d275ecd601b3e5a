// Notices that the tasks of this node are gone though their launcher has not said so.
//
// slurmstepd tells the end of each task. It cannot where a step fails after its tasks were made and
// before they run, as when another plugin fails: then it kills them and waits, at once, until
// nobody but itself is in its control group, where this process is. A daemon that went on until it
// is asked to finish would keep it waiting, and Slurm would drain the node.
//
// Where slurmstepd has waited for a task it may go on to TaskEpilog, and only when that has ended
// is the task's end told. An epilog runs in slurmstepd's control group, which is this daemon's as
// well (Slurm's control groups of version 2): while somebody runs there whom neither of the two has
// started for itself, Slurm waits, too. Where there is no such group Slurm does not wait for the
// daemon: there the end of a task that slurmstepd has waited for may take much longer, and one that
// stays a zombie was killed, for nobody waits for it.
//
// Of the tasks that live one is watched, so it costs one descriptor. A task whose process has ended
// is not gone while its control group holds others (srun --wait-for-children): where Slurm gave it
// one of its own, that decides.
//
// Thread safety: the loop's thread only.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "daemon/collect/job/task_files.h"
#include "daemon/loop.h"

namespace sonde::node {

class TaskWatch {
 public:
  struct Options {
    // How long the launcher may take to tell the end of tasks that are gone. With the time that a
    // daemon needs to finish it must be less than 3 s.
    Nanos patience = kSecond;
    // And of tasks that it has waited for, where control groups do not tell whether an epilog runs:
    // a longer one makes a step one whose end is not known.
    Nanos patience_with_epilogs = 45 * kSecond;
    // How often is looked whether a control group is still in use.
    Nanos interval = 250 * kMillisecond;
    std::string proc = "/proc";
    std::string cgroups = "/sys/fs/cgroup";
  };

  // `gone` is called once.
  TaskWatch(Loop& loop, Options options, std::function<void()> gone);
  ~TaskWatch();
  TaskWatch(const TaskWatch&) = delete;
  TaskWatch& operator=(const TaskWatch&) = delete;

  void Add(uint32_t rank, pid_t pid);
  // The launcher has told its end.
  void Ended(uint32_t rank);
  void Stop();

 private:
  struct Task {
    pid_t pid = 0;
    std::string cgroup;  // of its own, below Options::cgroups; "" if it has none
    bool exited = false;
  };

  std::string CgroupOf(pid_t pid) const;
  bool InUse(const Task& task) const;
  bool IsZombie(const Task& task) const;
  bool IsExpected(pid_t pid) const;
  std::optional<collect::TaskStat> StatOf(pid_t pid) const;
  // In slurmstepd's control group; nullopt if this daemon is in none.
  std::optional<bool> EpilogRuns() const;
  // Watches a task that lives; without any, waits for what the launcher says.
  void WatchNext();
  void OnPatienceOver();

  Loop& loop_;
  const Options options_;
  std::function<void()> gone_;
  std::map<uint32_t, Task> tasks_;  // by rank, those whose end was not told
  const std::string own_cgroup_;
  uint64_t own_start_ = 0;
  UniqueFd watched_;
  uint32_t watched_rank_ = 0;
  Loop::TimerId timer_ = 0;
  Nanos gone_since_ = 0;  // monotonic
};

}  // namespace sonde::node
