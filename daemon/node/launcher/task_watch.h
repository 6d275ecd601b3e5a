// Notices that the tasks of this node are gone though their launcher has not said so.
//
// slurmstepd tells the end of each task. It cannot where a step fails after its tasks were made and
// before they run, as when another plugin fails: then it kills them and waits, at once, until
// nobody but itself is in its control group, where this process is. A daemon that went on until it
// is asked to finish would keep it waiting, and Slurm would drain the node.
//
// After slurmstepd has waited for a task it may go on to TaskEpilog, and it tells the task's end
// only when that has ended. An epilog runs in slurmstepd's control group, which is this daemon's as
// well (Slurm's control groups of version 2): while a process runs there that neither slurmstepd
// nor this daemon has started for itself, Slurm waits, too. Without such a group Slurm does not
// wait for the daemon: then the end of a task that slurmstepd has waited for may take much longer,
// and a task that stays a zombie was killed, for nobody waits for it.
//
// One of the living tasks is watched, by a descriptor that the kernel has for it. Where there is
// none (before Linux 5.3, or because the process has too many open files) the watch looks now and
// then whether the task lives, and tries again. A task whose process has ended is not gone while
// its control group holds others (srun --wait-for-children): if Slurm gave the task a group of its
// own, that group decides.
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
    // How long the launcher may take to tell the end of tasks that are gone: slurmstepd looks once
    // a second whether an epilog has ended. With the time that a daemon needs to finish it must be
    // less than 3 s.
    Nanos patience = 1150 * kMillisecond;
    // The same since an epilog was seen last, which may have ended up to `interval` later. Who runs
    // epilogs is past all that could fail, so it will tell, on a busy machine after some time.
    Nanos patience_after_epilog = 5 * kSecond;
    // The same for tasks that it has waited for, where control groups do not tell whether an epilog
    // runs: a longer epilog leaves the step's end unknown.
    Nanos patience_with_epilogs = 45 * kSecond;
    // How often the watch looks whether a control group is still in use.
    Nanos interval = 250 * kMillisecond;
    // How often it looks at a task for which there is no descriptor.
    Nanos look = 500 * kMillisecond;
    // A descriptor of the process, which becomes readable when that ends; -1 and errno without one.
    int (*open)(pid_t pid) = OpenPidfd;
    std::string proc = "/proc";
    std::string cgroups = "/sys/fs/cgroup";
  };

  static int OpenPidfd(pid_t pid);

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
    uint64_t start = 0;  // of the process, in clock ticks since boot; 0: not known
    std::string cgroup;  // of its own, below Options::cgroups; "" if it has none
    bool exited = false;
  };

  std::string CgroupOf(pid_t pid) const;
  bool InUse(const Task& task) const;
  bool IsZombie(const Task& task) const;
  bool IsExpected(pid_t pid) const;
  std::optional<collect::TaskStat> StatOf(pid_t pid) const;
  bool Lives(Task& task) const;
  // By a descriptor. False: there is none, or the task is gone, which is noted.
  bool Watch(uint32_t rank, Task& task);
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
  Nanos gone_since_ = 0;   // monotonic
  Nanos epilog_seen_ = 0;  // the same, when one ran last; 0: none was seen
};

}  // namespace sonde::node
