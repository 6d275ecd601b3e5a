// Ingests one step; its writer, the head, does this once srun has gone on.
//
// Thread safety: a function without state.
#pragma once

#include <string>

#include "core/status.h"
#include "core/time.h"

namespace sonde {

struct Retention;

// Ingests one finished live directory into db/, if db/ can be opened; kBusy if db/ is locked. Then
// deletes, for a few milliseconds, what exceeds `limits`, if there are any; deletes first if there
// is no room for the step otherwise.
Status IngestLive(const std::string& archive, const std::string& live_path, Nanos wait,
                  const Retention* limits = nullptr);

}  // namespace sonde
