// The rings in the shared memory (libclient/layout.h), and writing into them.
//
// Thread safety: as stated with each function. Write is wait-free.
#pragma once

#include <cstdint>
#include <string_view>

#include "libclient/layout.h"
#include "libclient/segment.h"

namespace sonde::client {

// Where the ring of entries of a kind is.
struct Moments {
  using Entry = Moment;
  static constexpr size_t kEntries = kMoments;
  static uint64_t* Tickets(const Segment& segment) { return &segment.header()->moments; }
  static uint32_t* Limit(const Segment& segment) { return &segment.header()->moments_limit; }
  static Entry* At(const Segment& segment, size_t place) { return segment.moment(place); }
  static bool Reserve(Segment& segment, size_t end) { return segment.ReserveMoments(end); }
  static size_t Reserved(const Segment& segment) { return segment.moments(); }
};
struct Past {
  using Entry = PastValue;
  static constexpr size_t kEntries = kPastValues;
  static uint64_t* Tickets(const Segment& segment) { return &segment.header()->past; }
  static uint32_t* Limit(const Segment& segment) { return &segment.header()->past_limit; }
  static Entry* At(const Segment& segment, size_t place) { return segment.past_value(place); }
  static bool Reserve(Segment& segment, size_t end) { return segment.ReservePast(end); }
  static size_t Reserved(const Segment& segment) { return segment.past(); }
};

// The first `size` bytes of `made`, which begins with a sequence that does not count, become the
// entry of that ticket; left out if another thread is still writing the one a round before it.
void WriteEntry(void* entry, const void* made, size_t size, uint64_t ticket);

template <typename Kind>
class Ring {
 public:
  constexpr Ring() = default;

  // Any thread: draws the ticket of one entry; the caller writes every ticket once.
  static uint64_t Draw(Segment& segment) {
    return __atomic_fetch_add(Kind::Tickets(segment), 1, __ATOMIC_RELAXED);
  }

  // Any thread: whether there is memory for the ticket's entry; if not, call Extend first.
  bool HasPlace(uint64_t ticket) const {
    return ticket % Kind::kEntries < __atomic_load_n(&limit_, __ATOMIC_ACQUIRE);
  }

  // Mutex held. False, with errno set, if the system gives no memory.
  bool Extend(Segment& segment, uint64_t ticket) {
    if (!Kind::Reserve(segment, (ticket % Kind::kEntries + 1) * sizeof(typename Kind::Entry))) {
      return false;
    }
    const auto limit = static_cast<uint32_t>(Kind::Reserved(segment));
    __atomic_store_n(&limit_, limit, __ATOMIC_RELEASE);
    __atomic_store_n(Kind::Limit(segment), limit, __ATOMIC_RELEASE);
    return true;
  }

  // Any thread: an entry of which the first `size` bytes matter.
  static void Write(Segment& segment, uint64_t ticket, const typename Kind::Entry& made,
                    size_t size = sizeof(typename Kind::Entry)) {
    WriteEntry(Kind::At(segment, ticket % Kind::kEntries), &made, size, ticket);
  }

  // In the child of a fork. Async-signal-safe.
  void Reset() { limit_ = 0; }

 private:
  uint32_t limit_ = 0;  // as in the header
};

// Any thread; text and unit have kMaxMomentText bytes together at most.
void WriteMoment(Segment& segment, uint64_t ticket, uint8_t kind, std::string_view text,
                 double value, std::string_view unit);

}  // namespace sonde::client
