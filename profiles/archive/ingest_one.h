// Taking in one step, by who has written it: the head, once srun has gone on.
//
// Thread safety: a function without state.
#pragma once

#include <string>

#include "core/status.h"
#include "core/time.h"

namespace sonde {

struct Retention;

// Ingests one finished live directory into db/, if db/ can be opened; kBusy if it is locked. Then
// deletes, for a few milliseconds, what exceeds `limits`, if there are any; before, if there is no
// room otherwise.
Status IngestLive(const std::string& archive, const std::string& live_path, Nanos wait,
                  const Retention* limits = nullptr);

}  // namespace sonde
