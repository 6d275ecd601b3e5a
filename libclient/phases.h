// The phases of this process: which are open, how often and since when.
//
// A phase that begins while it is open is the same phase; the last end closes it. Entries lie in
// private memory, made with the first phase, and stay until the process ends.
//
// Thread safety: none; the caller holds the library's mutex.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "libclient/layout.h"
#include "libclient/sonde.h"

namespace sonde::client {

inline constexpr char kPhaseCounter[] = "phase_seconds_total";
inline constexpr char kPhaseTag[] = "phase";
inline constexpr char kPhaseHelp[] = "Time spent in a phase of the program. Tag phase.";

struct OpenPhase {
  uint32_t hash;
  uint16_t name_size;
  bool counted;             // its counter was asked for, once
  sonde_metric_t* counter;  // of the seconds in it
  uint64_t depth;           // begins that have not ended
  int64_t since;            // CLOCK_MONOTONIC, when the outermost began
  char name[kMaxNameLength];
};

class Phases {
 public:
  constexpr Phases() = default;

  // The phase of that name, made now if `make`; nullptr if there is none, or no room for one.
  OpenPhase* Find(std::string_view name, bool make);

  // In the child of a fork: forgets the parent's phases.
  void Reset();

  static constexpr size_t kMax = 1024;  // names

 private:
  static constexpr size_t kBuckets = 2 * kMax;

  bool MakeTable();

  OpenPhase* phases_ = nullptr;
  uint16_t* buckets_ = nullptr;  // phase + 1; 0: free
  size_t count_ = 0;
};

}  // namespace sonde::client
