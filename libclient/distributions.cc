#include "libclient/distributions.h"

#include <float.h>
#include <sys/mman.h>

#include "libclient/shards.h"

namespace sonde::client {
namespace {

// What the inline function of sonde.h and the daemon must agree on.
static_assert(SONDE_HISTOGRAM_BUCKETS == histogram::kBuckets &&
              SONDE_HISTOGRAM_SHIFT == histogram::kShift &&
              SONDE_HISTOGRAM_FIRST == histogram::kFirst &&
              SONDE_HISTOGRAM_BUCKETS - 2 == histogram::kRegular);
static_assert(sizeof(sonde_distribution) == sizeof(Distribution) &&
              offsetof(sonde_distribution, sum) == offsetof(Distribution, sum) &&
              offsetof(sonde_distribution, min) == offsetof(Distribution, min) &&
              offsetof(sonde_distribution, max) == offsetof(Distribution, max) &&
              offsetof(sonde_distribution, counts) == offsetof(Distribution, counts));

void Lower(double* cell, double value) {
  double old;
  __atomic_load(cell, &old, __ATOMIC_RELAXED);
  while (value < old &&
         !__atomic_compare_exchange(cell, &old, &value, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
}

void Raise(double* cell, double value) {
  double old;
  __atomic_load(cell, &old, __ATOMIC_RELAXED);
  while (value > old &&
         !__atomic_compare_exchange(cell, &old, &value, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
}

}  // namespace

bool Distributions::Prepare(Segment& segment, size_t shard, uint32_t histogram) {
  if (tables_ == nullptr && !MakeTables()) return false;
  const bool own = shard != kSharedShard && handed_out_ - shared_ < kOwnDistributions;
  const size_t table = own || tables_[shard][histogram] != nullptr ? shard : size_t{kSharedShard};
  sonde_distribution*& place = tables_[table][histogram];
  if (place == nullptr) {
    sonde_distribution* const made = HandOut(segment, histogram);
    if (made == nullptr) return false;
    __atomic_store_n(&place, made, __ATOMIC_RELEASE);
    if (table == kSharedShard) ++shared_;
  }
  if (handed_out_ - shared_ == kOwnDistributions) {
    __atomic_store_n(&exhausted_, true, __ATOMIC_RELEASE);
  }
  if (shard != kSharedShard) {
    sonde_thread_.distributions = tables_[shard];
    sonde_thread_.distributions_limit = kMaxHistograms;
  }
  return true;
}

bool Distributions::MakeTables() {
  void* const memory = mmap(nullptr, kShards * sizeof(Table), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return false;
  __atomic_store_n(&tables_, static_cast<Table*>(memory), __ATOMIC_RELEASE);
  return true;
}

// One more, published for the daemon.
sonde_distribution* Distributions::HandOut(Segment& segment, uint32_t histogram) {
  if (handed_out_ == kDistributions || !segment.ReserveOwners() ||
      !segment.ReserveDistribution(handed_out_)) {
    return nullptr;
  }
  Distribution* const made = segment.distribution(handed_out_);
  made->min = DBL_MAX;
  made->max = -DBL_MAX;
  segment.owners()[handed_out_] = static_cast<uint16_t>(histogram);
  __atomic_store_n(&segment.header()->distributions, ++handed_out_, __ATOMIC_RELEASE);
  return reinterpret_cast<sonde_distribution*>(made);
}

void Distributions::Reset() {
  if (tables_ != nullptr) madvise(tables_, kShards * sizeof(Table), MADV_DONTNEED);
  handed_out_ = shared_ = 0;
  exhausted_ = false;
}

bool Distributions::ObserveOwn(uint32_t histogram, double value) {
  const sonde_thread& thread = sonde_thread_;
  if (histogram >= thread.distributions_limit) return false;
  sonde_distribution* const own = thread.distributions[histogram];
  if (own == nullptr) return false;
  double sum = own->sum + value;  // not const: Clang wants a pointer it could write to
  __atomic_store(&own->sum, &sum, __ATOMIC_RELAXED);
  if (value < own->min) __atomic_store(&own->min, &value, __ATOMIC_RELAXED);
  if (value > own->max) __atomic_store(&own->max, &value, __ATOMIC_RELAXED);
  uint64_t* const count = &own->counts[histogram::BucketOf(value)];
  __atomic_store_n(count, *count + 1, __ATOMIC_RELEASE);
  return true;
}

bool Distributions::ObserveCommon(uint32_t histogram, double value, bool shares) {
  const bool may_have_own =
      sonde_thread_.distributions_limit == 0 || !__atomic_load_n(&exhausted_, __ATOMIC_ACQUIRE);
  if (!shares && may_have_own) return false;
  Table* const tables = __atomic_load_n(&tables_, __ATOMIC_ACQUIRE);
  if (tables == nullptr) return false;
  sonde_distribution* const common =
      __atomic_load_n(&tables[kSharedShard][histogram], __ATOMIC_ACQUIRE);
  if (common == nullptr) return false;
  AddAtomically(&common->sum, value);
  Lower(&common->min, value);
  Raise(&common->max, value);
  __atomic_fetch_add(&common->counts[histogram::BucketOf(value)], 1, __ATOMIC_RELEASE);
  return true;
}

}  // namespace sonde::client
