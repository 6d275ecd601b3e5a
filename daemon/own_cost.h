// What this process itself has used so far.
//
// Thread safety: functions without state.
#pragma once

namespace sonde {

// User and system time of all threads.
double OwnCpuSeconds();
// Resident memory that is not shared with files: what the process adds to its node. NaN if it
// cannot be read.
double OwnPrivateBytes();

}  // namespace sonde
