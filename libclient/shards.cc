#include "libclient/shards.h"

namespace sonde::client {
namespace {

void* ToHandle(size_t shard) { return reinterpret_cast<void*>(shard + 1); }
size_t FromHandle(void* handle) { return reinterpret_cast<size_t>(handle) - 1; }

// As sonde_add() decides.
bool IsWhole(double value) {
  return value >= 0 && value < 9007199254740992.0 &&
         static_cast<double>(static_cast<int64_t>(value)) == value;
}

static_assert(sizeof(sonde_count) == sizeof(Count) &&
              offsetof(sonde_count, fraction) == offsetof(Count, fraction));

}  // namespace

void AddAtomically(double* cell, double value) {
  double old, sum;
  __atomic_load(cell, &old, __ATOMIC_RELAXED);
  do {
    sum = (__builtin_isnan(old) ? 0.0 : old) + value;
  } while (!__atomic_compare_exchange(cell, &old, &sum, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}

void Shards::Create(void (*release)(void*)) { has_key_ = pthread_key_create(&key_, release) == 0; }

size_t Shards::Enter(Segment& segment) {
  sonde_thread& thread = sonde_thread_;
  if (thread.state == kNoShard) {
    const size_t shard = Take(segment);
    thread.state = shard == kSharedShard ? kCommonShard : kOwnShard;
    thread.counts = reinterpret_cast<sonde_count*>(segment.shard(shard));
    return shard;
  }
  return thread.state == kOwnShard ? FromHandle(pthread_getspecific(key_)) : kSharedShard;
}

void Shards::Prepare(Segment& segment, uint32_t slot) {
  sonde_thread& thread = sonde_thread_;
  const size_t shard = Enter(segment);
  if (slot >= limits_[shard] && !Extend(segment, shard, slot)) {
    thread.state = kDenied;
    return;
  }
  if (thread.state == kOwnShard) thread.limit = limits_[shard];
}

// A free shard, now the calling thread's; the common one if there is none.
size_t Shards::Take(Segment& segment) {
  size_t shard = 0;
  while (shard < kSharedShard && taken_[shard]) ++shard;
  if (!has_key_ || shard == kSharedShard || pthread_setspecific(key_, ToHandle(shard)) != 0) {
    shard = kSharedShard;
  }
  taken_[shard] = true;
  Header* header = segment.header();
  if (header->shards <= shard) {
    __atomic_store_n(&header->shards, static_cast<uint32_t>(shard + 1), __ATOMIC_RELEASE);
  }
  return shard;
}

// Makes memory for the shard's slots up to the page of `slot`.
bool Shards::Extend(Segment& segment, size_t shard, uint32_t slot) {
  const uint32_t limit = (slot / kSlotsPerStep + 1) * kSlotsPerStep;
  if (!segment.ReserveShard(shard, limits_[shard], limit)) return false;
  __atomic_store_n(&limits_[shard], limit, __ATOMIC_RELEASE);
  __atomic_store_n(&segment.header()->shard_limit[shard], limit, __ATOMIC_RELEASE);
  return true;
}

void Shards::Release(void* shard) {
  taken_[FromHandle(shard)] = false;
  sonde_thread_ = {};
}

void Shards::Reset() {
  if (has_key_) pthread_setspecific(key_, nullptr);
  for (size_t i = 0; i < kShards; ++i) {
    taken_[i] = false;
    limits_[i] = 0;
  }
  sonde_thread_ = {};
}

void Shards::AddToOwn(uint32_t slot, double value) {
  sonde_count& count = sonde_thread_.counts[slot];
  if (IsWhole(value)) {
    __atomic_store_n(&count.whole, count.whole + static_cast<uint64_t>(value), __ATOMIC_RELAXED);
  } else {
    double sum = count.fraction + value;  // not const: Clang wants a pointer it could write to
    __atomic_store(&count.fraction, &sum, __ATOMIC_RELAXED);
  }
}

bool Shards::AddToCommon(Segment& segment, uint32_t slot, double value) {
  if (slot >= __atomic_load_n(&limits_[kSharedShard], __ATOMIC_ACQUIRE)) return false;
  Count& count = segment.shard(kSharedShard)[slot];
  if (IsWhole(value)) {
    __atomic_fetch_add(&count.whole, static_cast<uint64_t>(value), __ATOMIC_RELAXED);
  } else {
    AddAtomically(&count.fraction, value);
  }
  return true;
}

}  // namespace sonde::client
