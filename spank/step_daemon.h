// The daemon of a step on this node, for slurmstepd: prepared before there is a task, started when
// the first task is about to run, and asked to finish after the last.
//
// Until there is a task there is no process of ours. Slurm waits for every process in a step's
// control group before it calls slurm_spank_exit, and task_exit is called only for tasks that
// began: if a step failed before its first task, a daemon would keep Slurm waiting until Slurm
// drains the node. The lifeline is made beforehand, and so is the name of the application's socket,
// which tasks find in their environment.
//
// With SlurmdParameters=contain_spank the callbacks for tasks run in children of slurmstepd that
// share its memory and copy its descriptors. So all descriptors are made in Prepare, which runs in
// slurmstepd itself, such a child closes none, and the daemon is known by its ProcessId. The daemon
// then has the namespaces that Slurm gave the child, those of the job.
//
// Thread safety: Slurm's one thread that calls the plugin.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/status.h"
#include "launcher/last_words.h"
#include "launcher/launch.h"
#include "launcher/process.h"
#include "launcher/site/job_memory.h"

namespace sonde::spank {

class StepDaemon {
 public:
  // An end may take 2 s, of which Slurm needs a little.
  static constexpr std::chrono::milliseconds kStop{1800};
  // How long a killed daemon may take to be gone.
  static constexpr std::chrono::milliseconds kKilled{100};
  // How long it may take to find what it has left where there are no control groups: some ms, but
  // longer where all processors are taken.
  static constexpr std::chrono::milliseconds kOrphans{500};

  // Of the job on this node, bytes: what Slurm gave it, and what is added for each of its steps
  // when a daemon starts.
  struct Memory {
    uint64_t given = 0;
    uint64_t allowance = 0;
  };

  // `process` is what will be started, as `user`; `message` is its launch message.
  Status Prepare(launch::Process process, launch::Credentials user, std::string message,
                 const Memory& memory);
  bool prepared() const { return ends_.lifeline.open(); }

  // Called when there is a task; does nothing the second time. The daemon inherits the caller's
  // namespaces. `contained`: the caller is a child of slurmstepd.
  Status Start(bool contained);
  bool started() const { return started_; }
  launch::Lifeline& lifeline() { return ends_.lifeline; }
  // Where its socket for programs for metric-proxy is, if it could be made; "": it has none.
  const std::string& proxy() const { return process_.proxy; }
  // Whether its process has ended. The lifeline does not tell that: tasks that wait for their exec
  // have copies of the daemon's end.
  bool Gone() const;
  // Tells the daemon; a message that cannot be sent is dropped, which is noted once.
  void Tell(const launch::Writer& message, std::span<const int> fds = {});
  // In the process of a task, which was made before the daemon was started and waits until it is.
  void TellFromTask(const launch::Writer& message);

  // A packet of the daemon's that somebody else has received from the lifeline.
  void Take(std::string_view packet);
  // Once the daemon is gone by itself: what went wrong, if something did. Says so once.
  std::optional<launch::Failure> TakeFailure();
  // Whether it was gone before it was asked to finish.
  bool ended_early() const { return !asked_; }

  // Asks the daemon to finish, waits until it is gone, kills it if that takes too long, and what it
  // has left behind. Called once. False: it was killed.
  bool Stop();
  // For slurmstepd itself: lets go of the descriptors, but for those of connections to the daemon,
  // which it ends.
  void Close();

 private:
  Status StartNow();
  void KillLeft(bool orderly) const;

  launch::Ends ends_;
  launch::Process process_;
  launch::Credentials user_{};
  std::string message_;
  launch::JobMemory job_memory_;
  Memory memory_;
  launch::ProcessId id_;
  launch::LastWords last_words_;
  bool started_ = false;
  bool stopped_ = false;
  bool asked_ = false;   // to finish, while it was there
  bool judged_ = false;  // what it ended for is known
  bool drop_noted_ = false;
};

}  // namespace sonde::spank
