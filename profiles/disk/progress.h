// How far long work on an archive has come.
//
// Thread safety: functions without state.
#pragma once

#include <cstdint>
#include <functional>

#include "core/status.h"

namespace sonde {

// `done` of about `total` is done; `total` 0: nobody knows. False gives the work up, which leaves
// the archive as it was or partly done, never broken.
using ArchiveProgress = std::function<bool(uint64_t done, uint64_t total)>;

// The message of work that was given up.
inline Status StoppedWork() {
  return {Code::kUnavailable,
          "it was stopped before it was done, since the server that has the archive open ends; "
          "nothing is broken, the same command does it"};
}

}  // namespace sonde
