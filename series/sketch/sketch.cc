#include "series/sketch/sketch.h"

#include <algorithm>
#include <cmath>

#include "core/histogram_buckets.h"
#include "series/sketch/saturating_sum.h"

namespace sonde {
namespace {

constexpr double kLargest = std::numeric_limits<double>::max();

bool BucketBefore(const Sketch::Bucket& bucket, uint32_t index) { return bucket.first < index; }

double Middle(uint32_t bucket) {
  if (bucket == histogram::kUnderflow) return 0;
  if (bucket == histogram::kOverflow) return kLargest;
  return (histogram::LowerBound(bucket) + histogram::UpperBound(bucket)) / 2;
}

}  // namespace

void Sketch::Add(uint32_t bucket, uint64_t count) {
  if (count == 0) return;
  count_ = SaturatingSum(count_, count);
  if (buckets_.empty() || buckets_.back().first < bucket) {  // as they come from a reader
    buckets_.emplace_back(bucket, count);
    return;
  }
  const auto at = std::lower_bound(buckets_.begin(), buckets_.end(), bucket, BucketBefore);
  if (at->first == bucket) {
    at->second = SaturatingSum(at->second, count);
  } else {
    buckets_.insert(at, {bucket, count});
  }
}

void Sketch::AddSum(double sum, double min, double max) {
  if (std::isfinite(sum)) sum_ = std::clamp(sum_ + sum, -kLargest, kLargest);
  if (!std::isfinite(min) || !std::isfinite(max) || min > max) return;
  min_ = std::min(min_, min);
  max_ = std::max(max_, max);
}

void Sketch::Merge(const Sketch& other) {
  if (!other.buckets_.empty()) {
    std::vector<Bucket> merged;
    merged.reserve(buckets_.size() + other.buckets_.size());
    auto mine = buckets_.begin();
    for (const Bucket& theirs : other.buckets_) {
      while (mine != buckets_.end() && mine->first < theirs.first) merged.push_back(*mine++);
      if (mine != buckets_.end() && mine->first == theirs.first) {
        merged.emplace_back(theirs.first, SaturatingSum(mine++->second, theirs.second));
      } else {
        merged.push_back(theirs);
      }
    }
    merged.insert(merged.end(), mine, buckets_.end());
    buckets_.swap(merged);
  }
  count_ = SaturatingSum(count_, other.count_);
  AddSum(other.sum_, other.min_, other.max_);
}

double Sketch::Quantile(double q) const {
  if (count_ == 0 || std::isnan(q)) return std::nan("");
  if (knows_extremes() && q <= 0) return min_;
  if (knows_extremes() && q >= 1) return max_;
  const double rank = std::clamp(q, 0.0, 1.0) * static_cast<double>(count_);
  uint64_t below = 0;
  double value = Middle(buckets_.back().first);
  for (const auto& [bucket, count] : buckets_) {
    below = SaturatingSum(below, count);
    if (static_cast<double>(below) < rank) continue;
    value = Middle(bucket);
    break;
  }
  return knows_extremes() ? std::clamp(value, min_, max_) : value;
}

void Sketch::Encode(ByteWriter& out) const {
  out.Varint(buckets_.size());
  uint32_t next = 0;
  for (const auto& [bucket, count] : buckets_) {
    out.Varint(bucket - next);
    out.Varint(count);
    next = bucket + 1;
  }
  out.Fixed(sum_);
  out.Fixed<uint8_t>(knows_extremes() ? 1 : 0);
  if (!knows_extremes()) return;
  out.Fixed(min_);
  out.Fixed(max_);
}

Result<Sketch> Sketch::Decode(ByteReader& in) {
  Sketch sketch;
  const size_t buckets = in.Count(2, histogram::kBuckets);
  sketch.buckets_.reserve(buckets);
  bool good = true;
  uint64_t next = 0;
  for (size_t i = 0; i < buckets && good; ++i) {
    const uint64_t gap = in.Varint();
    const uint64_t count = in.Varint();
    good = count > 0 && gap < histogram::kBuckets - next;
    if (!good) break;
    sketch.Add(static_cast<uint32_t>(next + gap), count);
    next += gap + 1;
  }
  const auto sum = in.Fixed<double>();
  const auto known = in.Fixed<uint8_t>();
  good = good && std::isfinite(sum) && known <= 1;
  sketch.sum_ = sum;
  if (known == 1) {
    sketch.min_ = in.Fixed<double>();
    sketch.max_ = in.Fixed<double>();
    good = good && std::isfinite(sketch.min_) && std::isfinite(sketch.max_) &&
           sketch.min_ <= sketch.max_;
  }
  if (!good) in.Fail();
  if (in.ok()) return sketch;
  return Status(Code::kCorrupt, "a histogram is malformed");
}

}  // namespace sonde
