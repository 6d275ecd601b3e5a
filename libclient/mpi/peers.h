// For whom a rank waits in blocking receives and probes.
//
// Only where the call names the rank it waits for; which message completed MPI_Waitall or
// MPI_ANY_SOURCE's receive last, MPI does not tell. A metric for every pair of ranks would be too
// many: a rank remembers the few for which it waited most, and tells of one as soon as it has
// waited for it for kTold of the time since MPI_Init and for kLeastTold, with what it waited
// before. Waits shorter than kShortest do not count, since asking MPI who the rank is in
// MPI_COMM_WORLD takes a microsecond. So all numbers are lower bounds.
//
// Thread safety: the thread that called MPI_Init alone, whose time in MPI mpi_time_ratio tells.
#pragma once

#include "libclient/mpi/site.h"

namespace sonde::mpi {

inline constexpr double kShortest = 0.001;  // seconds
inline constexpr double kTold = 0.1;
inline constexpr double kLeastTold = 0.1;  // seconds

// A call waited so long for a message from `source` of `comm`, and ended `since_begin` after
// MPI_Init.
void AddPeer(int source, Word comm, double seconds, double since_begin);

// After a call that succeeded, took so long and ended at `now`.
template <class Shape, class Abi>
__attribute__((always_inline)) inline void CountPeer(const Word* a, double seconds, uint64_t now) {
  if constexpr (Shape::kPeer >= 0) {
    if (seconds < kShortest || !thread.main) return;
    AddPeer(Abi::Int(a[Shape::kPeer]), Abi::Comm(a[Shape::kPeerComm]), seconds,
            clock.Seconds(now - begun));
  }
}

}  // namespace sonde::mpi
