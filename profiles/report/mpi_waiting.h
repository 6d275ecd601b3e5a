// How long the ranks of a step waited for each other in MPI, and for whom, from the footprint
// alone.
//
// Calls that do nothing but wait (docs/interpose.md: receives, completion, probes, barriers) count
// in full. Of the time in other collectives counts what each rank has above the least of all ranks:
// who comes last does not wait (docs/analysis.md, "Time budget", has the source). That holds if all
// ranks take part in all of them, so it counts only where their numbers of calls differ by 2 % at
// most.
//
// Receives that name whom they wait for tell it themselves.
//
// A lower bound: ranks that come last in turn are all taken to move data here, since a footprint
// knows the whole step only. `sonde budget` looks at every 10 ticks.
//
// Thread safety: functions without state.
#pragma once

#include <limits>
#include <optional>

#include "profiles/model/profile.h"

namespace sonde {

struct MpiWaiting {
  // Of all ranks together; NaN: nothing was counted.
  double seconds = std::numeric_limits<double>::quiet_NaN();
  // For whom the others waited in collectives and receives, if that was at least half of the
  // waiting. Its node may not be known.
  std::optional<Owner> slowest;
};

// `tasks`: how many there are; NaN if that is not known, and then collectives tell nothing.
MpiWaiting WaitingInMpi(const Profile& profile, double tasks);

}  // namespace sonde
