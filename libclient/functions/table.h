// The functions that were called, by their addresses, and how many calls each of them had.
//
// A function's place is claimed by compare-and-swap at its first call and never given back, so a
// look-up takes no lock. Calls that libsonde cannot be told at the moment wait in `pending`.
//
// Thread safety: any thread, signal handlers too.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "libclient/interpose/telemetry.h"

namespace sonde::functions {

inline constexpr uint32_t kMaxFunctions = 1000;  // further ones are counted together
inline constexpr unsigned kPlaceBits = 11;       // so that half of the places stay free
inline constexpr size_t kPlaces = size_t{1} << kPlaceBits;

struct alignas(32) Function {
  uintptr_t address;        // atomic; 0: the place is free
  uint32_t slot_and_one;    // atomic: of the counter in libsonde; 0: none yet
  uint32_t pending;         // atomic
  sonde_metric_t* calls;    // atomic; nullptr: not registered
  sonde_metric_t* seconds;  // nullptr: not timed
};

// The last one has the functions that found no place.
extern Function functions[kPlaces + 1];
extern uint32_t claimed;  // atomic: places of functions of their own
inline Function& Others() { return functions[kPlaces]; }

inline size_t FirstPlace(uintptr_t address) {
  return (address * 0x9e3779b97f4a7c15) >> (64 - kPlaceBits);
}

// Its place, or that of the others if all are taken; nullptr if it is to get one.
inline Function* Find(uintptr_t address) {
  for (size_t at = FirstPlace(address);; at = (at + 1) % kPlaces) {
    Function& function = functions[at];
    const uintptr_t found = __atomic_load_n(&function.address, __ATOMIC_RELAXED);
    if (found == address) return &function;
    if (found == 0) {
      const bool full = __atomic_load_n(&claimed, __ATOMIC_RELAXED) >= kMaxFunctions;
      return full ? &Others() : nullptr;
    }
  }
}

// The same, and it gets one.
Function& Claim(uintptr_t address);

}  // namespace sonde::functions
