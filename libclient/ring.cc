#include "libclient/ring.h"

#include <stddef.h>
#include <string.h>

#include "core/clocks.h"

namespace sonde::client {
namespace {

// Whether this ticket may now write the entry.
bool Claim(uint64_t* at, uint64_t ticket) {
  uint64_t sequence = __atomic_load_n(at, __ATOMIC_RELAXED);
  return sequence % 2 == 0 && sequence < 2 * ticket + 1 &&
         __atomic_compare_exchange_n(at, &sequence, 2 * ticket + 1, false, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED);
}

}  // namespace

void WriteEntry(void* entry, const void* made, size_t size, uint64_t ticket) {
  auto* const words = static_cast<uint64_t*>(entry);
  if (!Claim(words, ticket)) return;
  // Each with release: the daemon must not see any of it under the old sequence.
  for (size_t at = 1; at * sizeof(uint64_t) < size; ++at) {
    uint64_t word;
    memcpy(&word, static_cast<const char*>(made) + at * sizeof(word), sizeof(word));
    __atomic_store_n(words + at, word, __ATOMIC_RELEASE);
  }
  __atomic_store_n(words, 2 * ticket + 2, __ATOMIC_RELEASE);
}

void WriteMoment(Segment& segment, uint64_t ticket, uint8_t kind, std::string_view text,
                 double value, std::string_view unit) {
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
  Ring<Moments>::Write(segment, ticket, made, size);
}

}  // namespace sonde::client
