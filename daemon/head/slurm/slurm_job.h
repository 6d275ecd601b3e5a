// What Slurm tells of the step's job: what the job asked for, once in a step that is not short, and
// why its tasks were killed, if they were. For the first it is asked later than most steps last, so
// that thousands of short steps do not ask slurmctld; `ask_slurm = no` in sonde.conf leaves out
// both.
//
// At the end only a head beside srun asks: on a node slurmstepd waits for the daemon.
//
// Thread safety: the loop's thread only.
#pragma once

#include <functional>
#include <string>

#include "core/config.h"
#include "daemon/head/record/step_record.h"
#include "daemon/head/slurm/squeue.h"
#include "daemon/launch_message.h"
#include "daemon/loop.h"

namespace sonde::head {

class SlurmJob {
 public:
  static constexpr Nanos kAskAfter = 10 * kSecond;
  static constexpr Nanos kLimit = 10 * kSecond;
  static constexpr Nanos kLimitAtEnd = 250 * kMillisecond;

  SlurmJob(Loop& loop, const LaunchMessage& launch, const Config& config, StepRecord& record);
  ~SlurmJob() { loop_.Cancel(timer_); }
  SlurmJob(const SlurmJob&) = delete;
  SlurmJob& operator=(const SlurmJob&) = delete;

  // `done` is called within kLimitAtEnd, perhaps before this returns. kCancelled: nobody knows.
  void WhyKilled(Nanos now, std::function<void(EndState)> done);
  // The same as far as it is known without asking.
  EndState WhyKilledAsFarAsKnown(Nanos now) const;

 private:
  void Ask();
  void OnRequest(const JobRequest& told);

  Loop& loop_;
  StepRecord& record_;
  const std::string job_;  // "": nobody is asked
  const bool at_end_;
  Squeue squeue_;
  Loop::TimerId timer_ = 0;
};

}  // namespace sonde::head
