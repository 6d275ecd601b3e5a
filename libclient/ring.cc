#include "libclient/ring.h"

#include <stddef.h>
#include <string.h>

#include "core/clocks.h"

namespace sonde::client {
namespace {

// Whether this ticket may now write the entry.
bool Claim(Moment* moment, uint64_t ticket) {
  uint64_t sequence = __atomic_load_n(&moment->sequence, __ATOMIC_RELAXED);
  return sequence % 2 == 0 && sequence < 2 * ticket + 1 &&
         __atomic_compare_exchange_n(&moment->sequence, &sequence, 2 * ticket + 1, false,
                                     __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

}  // namespace

bool Ring::Extend(Segment& segment, uint64_t ticket) {
  if (!segment.ReserveMoments((ticket % kMoments + 1) * sizeof(Moment))) return false;
  const auto limit = static_cast<uint32_t>(segment.moments());
  __atomic_store_n(&limit_, limit, __ATOMIC_RELEASE);
  __atomic_store_n(&segment.header()->moments_limit, limit, __ATOMIC_RELEASE);
  return true;
}

void Ring::Write(Segment& segment, uint64_t ticket, uint8_t kind, std::string_view text,
                 double value, std::string_view unit) {
  Moment* const moment = segment.moment(ticket % kMoments);
  if (!Claim(moment, ticket)) return;
  Moment made;
  made.time = WallNow();
  made.value = value;
  made.kind = kind;
  made.reserved = 0;
  made.reserved2 = 0;
  made.text_size = static_cast<uint16_t>(text.size());
  made.unit_size = static_cast<uint16_t>(unit.size());
  if (!text.empty()) memcpy(made.text, text.data(), text.size());
  if (!unit.empty()) memcpy(made.text + text.size(), unit.data(), unit.size());
  const size_t size = offsetof(Moment, text) + text.size() + unit.size();
  // Each with release: the daemon must not see any of it under the old sequence.
  for (size_t at = sizeof(made.sequence); at < size; at += sizeof(uint64_t)) {
    uint64_t word;
    memcpy(&word, reinterpret_cast<const char*>(&made) + at, sizeof(word));
    auto* const to = reinterpret_cast<uint64_t*>(reinterpret_cast<char*>(moment) + at);
    __atomic_store_n(to, word, __ATOMIC_RELEASE);
  }
  __atomic_store_n(&moment->sequence, 2 * ticket + 2, __ATOMIC_RELEASE);
}

}  // namespace sonde::client
