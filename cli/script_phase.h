// Phases of scripts, whose begin and end come from two processes: `sonde phase begin` and `sonde
// phase end`. sonde_phase_end() knows the phases of its own process only.
//
// Plots show them as bands like others, but their seconds are not counted: the process that could
// count them has ended. Part of the command `sonde`, not of libsonde.
//
// Thread safety: any thread.
#pragma once

#include <cstdint>

namespace sonde::client {

// `kind` is kMomentPhaseBegin or kMomentPhaseEnd. Returns a code of sonde.h.
int TellScriptPhase(uint8_t kind, const char* name);

}  // namespace sonde::client
