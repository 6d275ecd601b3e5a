// What the job asked for, beside what the step used of it; and how the step's tasks ended, where
// they did not end well.
//
// What was asked for is of the job (JobRequest, and Slurm's variables in the description), what was
// used is of the step. Formulas:
//
//   time     from the job's begin, or the step's if that is not known, to the step's end; of the
//            job's time limit
//   CPUs     CPU time of the tasks / the time for which they were measured, which is how many CPUs
//            they kept busy in the mean; of the step's own (StepCpus), or of the job's on the
//            step's nodes (SLURM_JOB_CPUS_PER_NODE) if these are fewer or the step's are not known
//   memory   Summary::memory_peak of Summary::memory_limit
//   GPUs     those of which no sample of gpu_utilization_ratio on any node was above kIdleGpu; of
//            those that were seen
//
// Thread safety: functions without state.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "profiles/model/profile.h"
#include "profiles/model/summary.h"

namespace sonde {

inline constexpr double kIdleGpu = 0.01;

struct Used {
  std::string_view what;  // "time", "cpus", "memory", "gpus"
  std::string_view unit;  // "seconds", "1", "bytes", "1"
  double asked = 0;
  double used = 0;
  std::string text;  // "13 min of 2 h (11 %)"
};

// What is not known is not there. `now` ends a running step.
std::vector<Used> AskedAndUsed(const Profile& profile, const Summary& summary, Nanos now);

// The CPUs of the job on the step's nodes, all together; 0: not known.
double AskedCpus(const JobDescription& job);
// Those that the step has itself: its control groups' or, for so many tasks, what it asked for;
// NaN: not known.
double StepCpus(const Profile& profile, double tasks);
// That the step asked for, for each of its tasks; NaN: it did not.
double AskedCpusPerTask(const JobDescription& job);

// How long the job waited in the queue, its QOS, and what its nodes had to have; or "".
std::string OtherRequests(const JobDescription& job);

// "code 1: tasks 3 and 7-9; SIGSEGV: task 12"; or "".
std::string ExitsText(const JobDescription& job);

// What a wait status says: "code 1", "SIGSEGV".
std::string ExitText(int wait_status);

}  // namespace sonde
