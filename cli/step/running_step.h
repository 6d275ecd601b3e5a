// A question to the head of a step that is running, or was when the archive was looked at.
//
// A head that ends closes its server first and stores the rest then; srun does not wait long for a
// slow disk. So where nobody answers any more, the step may be about to end.
//
// Thread safety: functions without state.
#pragma once

#include <string>

#include "core/status.h"
#include "core/time.h"
#include "profiles/archive/archive.h"

namespace sonde::cli {

// GET of `target` from the head of a running entry; codes as in serve::AskHead. Asks again while
// nobody answers, within `patience`, and looks whether the step has ended: then `entry` is the one
// of the finished step, and the code is kNotFound. kUnavailable at once for a head that serves
// nothing.
Result<std::string> AskRunning(const Archive& archive, const std::string& target, Nanos patience,
                               ProfileEntry& entry);

}  // namespace sonde::cli
