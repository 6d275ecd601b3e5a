// Reading a ring of one application process (libclient/layout.h).
//
// An entry is copied before it is looked at, and taken if it was whole; entries that were
// overwritten before they could be read are counted by their tickets.
//
// Thread safety: none; the daemon's one thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "core/time.h"
#include "libclient/layout.h"

namespace sonde::collect {

template <typename Entry, size_t kEntries, size_t kOffset, uint64_t client::Header::*kTickets,
          uint32_t client::Header::*kLimit>
class RingReader {
 public:
  // Gives `take` the entries written since the last call, in order; it says whether an entry is
  // well formed. Returns how many are lost, malformed ones included. `now`: the time, as in the
  // calls before; `last`: nobody writes any more.
  template <typename Take>
  uint64_t Read(const char* base, Nanos now, bool last, const Take& take) {
    const auto* header = reinterpret_cast<const client::Header*>(base);
    const uint64_t end = __atomic_load_n(&(header->*kTickets), __ATOMIC_ACQUIRE);
    if (end <= next_) return 0;
    const auto limit = static_cast<uint32_t>(
        std::min<uint64_t>(__atomic_load_n(&(header->*kLimit), __ATOMIC_ACQUIRE), kEntries));
    uint64_t lost = 0;
    if (end - next_ > kEntries) {
      lost = std::min(end - next_ - kEntries, kMostAtATime);
      next_ = end - kEntries;
    }
    Entry entry;
    for (; next_ < end; ++next_) {
      const Found found = Copy(base, next_, limit, entry);
      if (found == Found::kUnfinished && !last && Awaits(end, now)) break;
      if (found != Found::kWhole || !take(entry)) ++lost;
    }
    return lost;
  }

 private:
  enum class Found : unsigned char { kWhole, kUnfinished, kGone };
  // A process that writes more than that between two reads has not drawn its tickets one by one.
  static constexpr uint64_t kMostAtATime = uint64_t{1} << 40;
  // Whoever has a ticket may wait for memory and for a processor before its entry is whole. A
  // thread that was ended in between keeps the others waiting no longer than this.
  static constexpr Nanos kPatience = 10 * kSecond;

  // Whether the next entry may still be finished.
  bool Awaits(uint64_t end, Nanos now) {
    if (next_ >= awaited_) {
      awaited_ = end;
      since_ = now;
    }
    return now - since_ < kPatience;
  }

  static Found Copy(const char* base, uint64_t ticket, uint32_t limit, Entry& out) {
    const size_t place = ticket % kEntries;
    if (place >= limit) return Found::kUnfinished;
    const char* from = base + kOffset + place * sizeof(Entry);
    const auto* sequence = reinterpret_cast<const uint64_t*>(from);
    const uint64_t whole = 2 * ticket + 2;
    const uint64_t before = __atomic_load_n(sequence, __ATOMIC_ACQUIRE);
    if (before != whole) return before < whole ? Found::kUnfinished : Found::kGone;
    for (size_t at = 0; at < sizeof(Entry); at += sizeof(uint64_t)) {
      const uint64_t word =
          __atomic_load_n(reinterpret_cast<const uint64_t*>(from + at), __ATOMIC_ACQUIRE);
      std::memcpy(reinterpret_cast<char*>(&out) + at, &word, sizeof(word));
    }
    return __atomic_load_n(sequence, __ATOMIC_RELAXED) == whole ? Found::kWhole : Found::kGone;
  }

  uint64_t next_ = 0;  // ticket
  // Entries of tickets below it are awaited since then.
  uint64_t awaited_ = 0;
  Nanos since_ = 0;
};

using MomentsReader = RingReader<client::Moment, client::kMoments, client::kMomentsOffset,
                                 &client::Header::moments, &client::Header::moments_limit>;
using PastReader = RingReader<client::PastValue, client::kPastValues, client::kPastOffset,
                              &client::Header::past, &client::Header::past_limit>;

}  // namespace sonde::collect
