// For which rank the others wait in collectives.
//
// Nobody leaves a collective that all ranks take part in before the last one has come, so the rank
// that spends least time in it is the one that came last. Over windows of some ticks (one
// collective may be counted on either side of a tick's end):
//
//   awaited(r) = sum over the windows in which r has the least of  sum over ranks (time - least)
//
// in rank seconds: what the others would have saved there had r come with them (the idea of "wait
// at N x N" in Geimer, Wolf, Wylie, Ábrahám, Becker, Mohr, "The Scalasca performance toolset
// architecture", Concurrency and Computation 22, 2010). Ranks that come last in turn within one
// window hide each other, so it is a lower bound.
//
// Thread safety: none; a value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "insight/stragglers.h"

namespace sonde::insight {

inline constexpr size_t kCollectiveWindow = 10;  // ticks

class CollectiveWaits {
 public:
  // Of so many ticks, each of that length.
  CollectiveWaits(size_t ticks, double tick_seconds);
  // Seconds of the rank in collectives, barriers included, per second, at each tick; NaN: not
  // known. Calls count when they return: all return together.
  void Add(uint32_t rank, const Row& in_collectives);
  // Rank seconds by the rank that was awaited; without those that nobody waited for.
  std::map<uint32_t, double> Awaited() const;

 private:
  struct Window {
    double sum = 0;  // of all ranks
    size_t ranks = 0;
    double least = 0;
    uint32_t last = 0;  // the rank with the least
  };
  double tick_seconds_;
  std::vector<Window> windows_;
};

}  // namespace sonde::insight
