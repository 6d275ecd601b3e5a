// The ring of moments in the shared memory, and writing into it.
//
// Thread safety: as stated with each function. Write is wait-free.
#pragma once

#include <cstdint>
#include <string_view>

#include "libclient/layout.h"
#include "libclient/segment.h"

namespace sonde::client {

class Ring {
 public:
  constexpr Ring() = default;

  // Any thread: draws the ticket of one moment; the caller writes every ticket once.
  static uint64_t Draw(Segment& segment) {
    return __atomic_fetch_add(&segment.header()->moments, 1, __ATOMIC_RELAXED);
  }

  // Any thread: whether there is memory for the ticket's entry; if not, call Extend first.
  bool HasPlace(uint64_t ticket) const {
    return ticket % kMoments < __atomic_load_n(&limit_, __ATOMIC_ACQUIRE);
  }

  // Mutex held. False, with errno set, if the system gives no memory.
  bool Extend(Segment& segment, uint64_t ticket);

  // Any thread; text and unit have kMaxMomentText bytes together at most. The moment is left out if
  // another thread is still writing the moment kMoments before it.
  static void Write(Segment& segment, uint64_t ticket, uint8_t kind, std::string_view text,
                    double value, std::string_view unit);

  // In the child of a fork. Async-signal-safe.
  void Reset() { limit_ = 0; }

 private:
  uint32_t limit_ = 0;  // as in the header
};

}  // namespace sonde::client
