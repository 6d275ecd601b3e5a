// Ingests the step of a head, once srun has gone on, and what other heads have left to it.
//
// Thread safety: a function without state.
#pragma once

#include <string>

#include "core/status.h"
#include "core/time.h"

namespace sonde {

struct Retention;

// Ingests one finished live directory into db/, if db/ can be opened; kBusy if db/ is locked: then
// who has the lock takes the step in. Deletes, for a few milliseconds, what exceeds `limits`, if
// there are any; deletes first if there is no room for the step otherwise. Then takes in, for about
// `others_for`, steps that were left to this process while it had the lock: of a thousand heads
// that end at once a few do the work of all.
inline constexpr Nanos kOthersFor = kSecond;
Status IngestLive(const std::string& archive, const std::string& live_path, Nanos wait,
                  const Retention* limits = nullptr, Nanos others_for = kOthersFor);

}  // namespace sonde
