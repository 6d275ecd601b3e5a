#include "series/sketch/quantile_sketch.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "series/sketch/saturating_sum.h"

namespace sonde {
namespace {

// A value's bucket is its exponent and the first bits of its mantissa: the bits of the IEEE 754
// double without the lowest kShift.
constexpr int kSubBits = 6;
constexpr int kShift = 52 - kSubBits;
constexpr int32_t kFirst = 1 << kSubBits;          // of the smallest normal double
constexpr int32_t kLast = (2047 << kSubBits) - 1;  // of the largest
// Then both signs of all doubles fit kMaxBuckets.
constexpr uint8_t kMaxLevel = 9;

int32_t AtLevel(int32_t index, int level) {
  return index < 0 ? -(-index >> level) : index >> level;
}

// Of a finite value.
int32_t IndexOf(double value, int level) {
  const auto key = static_cast<int32_t>(std::bit_cast<uint64_t>(std::fabs(value)) >> kShift);
  if (key < kFirst) return 0;
  return AtLevel(value < 0 ? -key : key, level);
}

// Of a bucket above that of 0.
double LowerBound(int64_t index, int level) {
  const auto bits = static_cast<uint64_t>(index << level) << kShift;
  return std::min(std::bit_cast<double>(bits), std::numeric_limits<double>::max());
}

double Middle(int32_t index, int level) {
  if (index < 0) return -Middle(-index, level);
  if (index == 0) return 0;
  const double lower = LowerBound(index, level);
  return lower + (LowerBound(int64_t{index} + 1, level) - lower) / 2;
}

bool Before(const QuantileSketch::Bucket& bucket, int32_t index) { return bucket.first < index; }

}  // namespace

void QuantileSketch::Clear() {
  buckets_.clear();
  count_ = 0;
  min_ = max_ = 0;
  level_ = 0;
}

void QuantileSketch::Add(double value, uint64_t count) {
  if (!std::isfinite(value) || count == 0) return;
  value += 0.0;  // -0 is 0, whichever comes first
  min_ = empty() ? value : std::min(min_, value);
  max_ = empty() ? value : std::max(max_, value);
  count_ = SaturatingSum(count_, count);
  const int32_t index = IndexOf(value, level_);
  const auto at = std::lower_bound(buckets_.begin(), buckets_.end(), index, Before);
  if (at != buckets_.end() && at->first == index) {
    at->second = SaturatingSum(at->second, count);
    return;
  }
  buckets_.insert(at, {index, count});
  while (buckets_.size() > kMaxBuckets) Coarsen(level_ + 1);
}

void QuantileSketch::Coarsen(uint8_t level) {
  if (level <= level_) return;
  size_t kept = 0;
  for (const auto& [index, count] : buckets_) {
    const int32_t coarse = AtLevel(index, level - level_);
    if (kept > 0 && buckets_[kept - 1].first == coarse) {
      buckets_[kept - 1].second = SaturatingSum(buckets_[kept - 1].second, count);
    } else {
      buckets_[kept++] = {coarse, count};
    }
  }
  buckets_.resize(kept);
  level_ = level;
}

// In place, from the back, where there is room for both.
void QuantileSketch::Merge(const QuantileSketch& other) {
  if (other.empty()) return;
  min_ = empty() ? other.min_ : std::min(min_, other.min_);
  max_ = empty() ? other.max_ : std::max(max_, other.max_);
  count_ = SaturatingSum(count_, other.count_);
  Coarsen(other.level_);
  const int finer = level_ - other.level_;
  size_t mine = buckets_.size();
  size_t theirs = other.buckets_.size();
  const size_t total = mine + theirs;
  buckets_.resize(total);
  size_t to = total;
  while (theirs > 0) {
    const Bucket& bucket = other.buckets_[theirs - 1];
    const int32_t index = AtLevel(bucket.first, finer);
    if (to < total && buckets_[to].first == index) {
      buckets_[to].second = SaturatingSum(buckets_[to].second, bucket.second);
      --theirs;
    } else if (mine > 0 && buckets_[mine - 1].first >= index) {
      buckets_[--to] = buckets_[--mine];
    } else {
      buckets_[--to] = {index, bucket.second};
      --theirs;
    }
  }
  buckets_.erase(buckets_.begin() + static_cast<ptrdiff_t>(mine),
                 buckets_.begin() + static_cast<ptrdiff_t>(to));
  while (buckets_.size() > kMaxBuckets) Coarsen(level_ + 1);
}

double QuantileSketch::Quantile(double q) const {
  if (empty() || std::isnan(q)) return std::nan("");
  if (q <= 0) return min_;
  if (q >= 1) return max_;
  return At(q * static_cast<double>(count_));
}

// The value at this place from below, 1 to count.
double QuantileSketch::At(double rank) const {
  if (rank <= 1) return min_;
  uint64_t below = 0;
  for (const auto& [index, count] : buckets_) {
    below = SaturatingSum(below, count);
    if (static_cast<double>(below) >= rank) return std::clamp(Middle(index, level_), min_, max_);
  }
  return max_;
}

double QuantileSketch::Percentile(double share) const {
  if (empty() || std::isnan(share)) return std::nan("");
  const auto count = static_cast<double>(count_);
  const double position = share * (count + 1);
  if (position < 1) return min_;
  if (position >= count) return max_;
  const double rank = std::floor(position);
  const double lower = At(rank);
  const double upper = rank + 1 >= count ? max_ : At(rank + 1);
  return std::lerp(lower, upper, position - rank);
}

double QuantileSketch::Error() const { return std::ldexp(1.0, level_ - kSubBits - 1); }

// --- Bytes ---

void QuantileSketch::Encode(ByteWriter& out) const {
  out.Fixed(level_);
  out.Varint(buckets_.size());
  if (empty()) return;
  int32_t next = -kLast;
  for (const auto& [index, count] : buckets_) {
    out.Varint(static_cast<uint64_t>(index - next));
    out.Varint(count);
    next = index + 1;
  }
  out.Fixed(min_);
  out.Fixed(max_);
}

bool QuantileSketch::ReadBuckets(ByteReader& in) {
  const size_t count = in.Count(2, kMaxBuckets);
  int64_t next = -kLast;
  const int64_t last = AtLevel(kLast, level_);
  for (size_t i = 0; i < count; ++i) {
    const uint64_t gap = in.Varint();
    const uint64_t of_bucket = in.Varint();
    if (!in.ok() || of_bucket == 0 || gap > uint64_t{2} * kLast) return false;
    const int64_t index = next + static_cast<int64_t>(gap);
    if (index < -last || index > last) return false;
    buckets_.emplace_back(static_cast<int32_t>(index), of_bucket);
    count_ = SaturatingSum(count_, of_bucket);
    next = index + 1;
  }
  return in.ok();
}

Status QuantileSketch::Decode(ByteReader& in) {
  Clear();
  level_ = in.Fixed<uint8_t>();
  bool good = level_ <= kMaxLevel && ReadBuckets(in) && (level_ == 0 || !empty());
  if (good && !empty()) {
    min_ = in.Fixed<double>();
    max_ = in.Fixed<double>();
    good = in.ok() && std::isfinite(min_) && std::isfinite(max_) && min_ <= max_ &&
           IndexOf(min_, level_) == buckets_.front().first &&
           IndexOf(max_, level_) == buckets_.back().first;
    min_ += 0.0;
    max_ += 0.0;
  }
  if (good && in.ok()) return {};
  in.Fail();
  Clear();
  return {Code::kCorrupt, "a sketch of quantiles is malformed"};
}

}  // namespace sonde
