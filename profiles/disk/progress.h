// How far long work on an archive is.
//
// Thread safety: functions without state.
#pragma once

#include <cstdint>
#include <functional>

#include "core/status.h"

namespace sonde {

// So much is done of about so much; `total` 0: nobody knows. False: the work is given up, which
// leaves the archive as it was or partly done, never broken.
using ArchiveProgress = std::function<bool(uint64_t done, uint64_t total)>;

// What work that was given up says.
inline Status StoppedWork() {
  return {Code::kUnavailable,
          "it was stopped before it was done, since the server that has the archive open ends; "
          "nothing is broken, the same command does it"};
}

}  // namespace sonde
