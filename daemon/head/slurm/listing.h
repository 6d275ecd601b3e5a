// What squeue prints of a job, in the form that it is asked for here.
//
// Thread safety: functions without state.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/job.h"
#include "core/status.h"

namespace sonde::head {

// What Slurm knows of a job now.
struct JobNow {
  std::optional<EndState> end;  // why its tasks are killed; nothing: it is not being ended
  JobRequest request;
};

// argv of the command; its times are those of its time zone, which has to be UTC.
std::vector<std::string> SqueueArguments(std::string_view job);

// kNotFound: the job is not listed; of an array several jobs may be. Fields that are not understood
// are not known.
Result<JobNow> ParseListing(std::string_view text, std::string_view job);

// "7-12:00:00", "12:00:00", "30:00" or "30" (minutes), "UNLIMITED"; 0: nothing of these.
Nanos ParseTimeLimit(std::string_view text);

}  // namespace sonde::head
