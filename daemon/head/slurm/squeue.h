// Asks Slurm about the job of the step: runs squeue, which asks slurmctld for this one job.
//
// The program is one of this daemon's (daemon/child_process.h): it ends with it at the latest, and
// is killed if it takes too long. Its output goes to memory of ours, so that it never waits for us.
//
// Thread safety: the loop's thread only.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

#include "core/status.h"
#include "core/unique_fd.h"
#include "daemon/head/slurm/listing.h"
#include "daemon/loop.h"

namespace sonde::head {

class Squeue {
 public:
  using Done = std::function<void(Result<JobNow>)>;

  explicit Squeue(Loop& loop) : loop_(loop) {}
  // Kills what still runs; `done` is not called then.
  ~Squeue() { Kill(); }
  Squeue(const Squeue&) = delete;
  Squeue& operator=(const Squeue&) = delete;

  // `done` is called on the loop, after `limit` at the latest, and not before this returns. What
  // was asked before is given up, and its `done` is not called.
  void Ask(std::string job, Nanos limit, Done done);

 private:
  Status Start();
  void OnExit();
  void Finish(Result<JobNow> now);
  void Kill();

  Loop& loop_;
  std::string job_;
  Done done_;
  pid_t pid_ = 0;
  UniqueFd pidfd_;
  UniqueFd output_;
  Loop::TimerId timer_ = 0;
};

}  // namespace sonde::head
