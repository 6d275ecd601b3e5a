#include "libclient/phases.h"

#include <string.h>
#include <sys/mman.h>

#include "core/text/hash.h"

namespace sonde::client {

OpenPhase* Phases::Find(std::string_view name, bool make) {
  if (phases_ == nullptr && (!make || !MakeTable())) return nullptr;
  const uint32_t hash = Fnv1a32(name);
  size_t bucket = hash % kBuckets;
  for (; buckets_[bucket] != 0; bucket = (bucket + 1) % kBuckets) {
    OpenPhase& phase = phases_[buckets_[bucket] - 1];
    if (phase.hash == hash && std::string_view(phase.name, phase.name_size) == name) return &phase;
  }
  if (!make || count_ == kMax) return nullptr;
  OpenPhase& phase = phases_[count_++];
  buckets_[bucket] = static_cast<uint16_t>(count_);
  phase.hash = hash;
  phase.name_size = static_cast<uint16_t>(name.size());
  memcpy(phase.name, name.data(), name.size());
  return &phase;
}

bool Phases::MakeTable() {
  const size_t size = kMax * sizeof(OpenPhase) + kBuckets * sizeof(uint16_t);
  void* const memory = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return false;
  phases_ = static_cast<OpenPhase*>(memory);
  buckets_ = reinterpret_cast<uint16_t*>(phases_ + kMax);
  return true;
}

void Phases::Reset() {
  for (size_t i = 0; i < count_; ++i) phases_[i].depth = 0;
}

}  // namespace sonde::client
