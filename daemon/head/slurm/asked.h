// What is known of a job without asking Slurm, and whether its time was over.
//
// Thread safety: functions without state.
#pragma once

#include <optional>
#include <string_view>

#include "core/job.h"

namespace sonde::head {

// Of the step's variables, as far as this release of Slurm sets them; nothing if none of them is
// there. `time_limit`: as the launcher tells it, or 0.
std::optional<JobRequest> RequestOfVariables(const JobDescription& job, Nanos time_limit);

// Adds what `told` knows.
void Complete(const JobRequest& told, JobRequest& request);

// kTimeout if the job's time was over at `now`; else kCancelled.
EndState WhyKilledByTime(const std::optional<JobRequest>& request, Nanos now);

}  // namespace sonde::head
