// Which thread adds to which shard of counters.
//
// A thread gets a shard of its own with its first sonde_add and gives it back, with its sums, when
// it ends; adding is a load and a store of memory that no other thread writes. When all shards are
// taken, further threads share the last one and add with compare-and-swap.
//
// Thread safety: as stated with each function.
#pragma once

#include <pthread.h>

#include <cstddef>
#include <cstdint>

#include "libclient/layout.h"
#include "libclient/segment.h"
#include "libclient/sonde.h"

namespace sonde::client {

// Values of sonde_thread::state. A thread observes into its shard's distributions, too.
enum ThreadState : uint32_t {
  kNoShard = 0,
  kOwnShard = 1,
  kCommonShard = 2,
  kDenied = 3,  // there was no memory for the counter it wanted to add to
};

// Adds to a cell that other threads write, too; NaN counts as zero.
void AddAtomically(double* cell, double value);

class Shards {
 public:
  constexpr Shards() = default;

  // Called once; `release` runs when a thread with a shard of its own ends, with the argument for
  // Release.
  void Create(void (*release)(void*));

  // Mutex held: the calling thread's shard, taken now if it has none; kSharedShard if it shares.
  size_t Enter(Segment& segment);

  // Mutex held: gets the calling thread ready to add to `slot`.
  void Prepare(Segment& segment, uint32_t slot);

  // Mutex held, on the thread that ends.
  void Release(void* shard);

  // In the child of a fork, in its only thread: nobody has a shard and nothing is reserved.
  void Reset();

  // The calling thread, without the mutex, after Prepare.
  static void AddToOwn(uint32_t slot, double value);

  // Any thread, without the mutex. False if Prepare must come first.
  bool AddToCommon(Segment& segment, uint32_t slot, double value);

 private:
  static constexpr uint32_t kSlotsPerStep = 256;  // a page

  size_t Take(Segment& segment);
  bool Extend(Segment& segment, size_t shard, uint32_t slot);

  pthread_key_t key_ = 0;
  bool has_key_ = false;
  bool taken_[kShards] = {};
  uint32_t limits_[kShards] = {};  // as in the header
};

}  // namespace sonde::client
