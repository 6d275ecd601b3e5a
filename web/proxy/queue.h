// The user's jobs in Slurm's queue, from squeue(1) on the host of the server.
//
// Thread safety: functions without state. They wait for squeue, up to 3 s.
#pragma once

#include <string>
#include <string_view>

#include "core/status.h"

namespace sonde::web {

// The command of a job, as squeue knows it. kNotFound: the user has no such job in the queue.
Result<std::string> QueuedCommand(std::string_view job);

}  // namespace sonde::web
