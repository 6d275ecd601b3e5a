// The daemon of a step on this node, for slurmstepd: prepared before there is a task, started when
// the first task is about to run, and asked to finish after the last.
//
// Until there is a task there is no process of ours. Slurm waits for every process in a step's
// control group before it calls slurm_spank_exit, and task_exit is called only for tasks that
// began: a daemon that was there when the step failed before its first task would keep Slurm
// waiting until it drains the node. Sockets and lifeline are made beforehand, so that tasks find
// them in their environment.
//
// With SlurmdParameters=contain_spank the callbacks for tasks run in children of slurmstepd that
// share its memory and copy its descriptors. So all descriptors are made in Prepare, which runs in
// slurmstepd itself, such a child closes none, and the daemon is known by its ProcessId. It then
// has the namespaces that Slurm gave the child, those of the job.
//
// Thread safety: Slurm's one thread that calls the plugin.
#pragma once

#include <chrono>
#include <span>
#include <string>

#include "core/status.h"
#include "launcher/launch.h"
#include "launcher/process.h"

namespace sonde::spank {

class StepDaemon {
 public:
  // What is left of the 2 s that an end may take: Slurm needs a little.
  static constexpr std::chrono::milliseconds kStop{1800};
  // How long one that was killed may take to be gone.
  static constexpr std::chrono::milliseconds kKilled{100};

  // `process` is what will be started, as `user`; `message` is its launch message.
  Status Prepare(launch::Process process, launch::Credentials user, std::string message);
  bool prepared() const { return ends_.lifeline.open(); }

  // Once there is a task; again it does nothing. The daemon's surroundings are those of the caller.
  // `contained`: the caller is a child of slurmstepd's.
  Status Start(bool contained);
  bool started() const { return started_; }
  launch::Lifeline& lifeline() { return ends_.lifeline; }
  // Its process has ended. The lifeline does not tell: tasks that wait for their exec have copies
  // of the daemon's end.
  bool Gone() const;
  // Tells the daemon; what it cannot be told is dropped, and noted once.
  void Tell(const launch::Writer& message, std::span<const int> fds = {});

  // Asks it to finish, waits until it is gone, and kills it if that takes too long. Once. False: it
  // was killed.
  bool Stop();
  // For slurmstepd itself: lets go of the descriptors.
  void Close();

 private:
  Status StartNow();

  launch::Ends ends_;
  launch::Process process_;
  launch::Credentials user_{};
  std::string message_;
  launch::ProcessId id_;
  bool started_ = false;
  bool stopped_ = false;
  bool drop_noted_ = false;
};

}  // namespace sonde::spank
