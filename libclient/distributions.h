// Which thread observes into which distribution, the parts of a histogram.
//
// A thread gets a distribution of its own with its first observation of each histogram. It belongs
// to the thread's shard (libclient/shards.h), so the next thread on that shard goes on with it.
// When all are taken, and for threads that have no shard of their own, each histogram has one
// shared distribution, with atomic updates.
//
// Every shard has a table of pointers in private memory, of which only the parts in use exist.
//
// Thread safety: as stated with each function.
#pragma once

#include <cstddef>
#include <cstdint>

#include "libclient/layout.h"
#include "libclient/segment.h"
#include "libclient/sonde.h"

namespace sonde::client {

class Distributions {
 public:
  constexpr Distributions() = default;

  // Mutex held: gets the calling thread, whose shard is given, ready to observe into `histogram`.
  // False if there is no memory.
  bool Prepare(Segment& segment, size_t shard, uint32_t histogram);

  // In the child of a fork, in its only thread: takes all distributions back. Async-signal-safe.
  void Reset();

  // The calling thread, without the mutex; false if it has no distribution of its own.
  static bool ObserveOwn(uint32_t histogram, double value);

  // Any thread, without the mutex; false if Prepare must come first. `shares`: the thread has no
  // shard of its own.
  bool ObserveCommon(uint32_t histogram, double value, bool shares);

 private:
  using Table = sonde_distribution* [kMaxHistograms];

  bool MakeTables();
  sonde_distribution* HandOut(Segment& segment, uint32_t histogram);

  Table* tables_ = nullptr;  // kShards; the last one has the shared distributions
  uint32_t handed_out_ = 0;
  uint32_t shared_ = 0;     // of these
  bool exhausted_ = false;  // no thread gets its own distribution any more; atomic
};

}  // namespace sonde::client
