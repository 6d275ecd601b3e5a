// Has a process of its own send the running step on, where sonde.conf says so (forward/follower.h):
// that process reads the archive, so the head has no part in it and waits for nothing.
//
// It is started a moment after the step and learns of the end by a pipe that is never written to.
// Beside srun it outlives this process for some seconds at most, and is started at the step's end
// if that comes first. On a node, where it is in the step's control group, it ends with this
// process, which waits for nothing: what is not sent by then waits in the archive for the next
// process that sends there.
//
// Thread safety: the loop's thread only.
#pragma once

#include <functional>
#include <string>

#include "core/config.h"
#include "core/job.h"
#include "daemon/loop.h"

namespace sonde::head {

class Forwarding {
 public:
  // Many steps are over by then, and the first ticks are not disturbed.
  static constexpr Nanos kStartAfter = kSecond;

  // `may_stay`: it may outlive this process.
  Forwarding(Loop& loop, std::string config_path, const Config& config, std::string archive,
             JobDescription job, bool may_stay, std::function<void(std::string)> note);
  ~Forwarding();
  Forwarding(const Forwarding&) = delete;
  Forwarding& operator=(const Forwarding&) = delete;

  // The step is over and its profile complete.
  void End();

 private:
  void Start();
  void OnExit();
  Status Spawn();

  Loop& loop_;
  const std::string config_path_;
  const std::string archive_;
  const JobDescription job_;
  const bool may_stay_;
  const std::function<void(std::string)> note_;
  Loop::TimerId timer_ = 0;
  // The pipe tells the process of the step's end, the pidfd tells us of the process's end.
  UniqueFd pipe_;
  UniqueFd pidfd_;
  pid_t pid_ = 0;
};

}  // namespace sonde::head
