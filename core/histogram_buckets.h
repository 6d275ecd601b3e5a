// The buckets of every histogram. The application, the daemon and the archive use the same buckets,
// so that histograms of threads, ranks, nodes and ticks can be added up.
//
// Logarithmic with a linear part: every power of two is cut into 32 buckets of one width, so that
// the middle of a bucket is within 1/64 (1.6 %) of every value in it. Finding a value's bucket
// takes a shift and a subtraction of its bits as IEEE 754 double.
//
// Header-only and free of dependencies: libsonde and the daemon use it. Values on disk and on
// the wire: never change them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sonde::histogram {

inline constexpr int kSubBits = 5;
inline constexpr int kMinExponent = -31;  // from 2^-31, 0.47 ns if the unit is seconds,
inline constexpr int kMaxExponent = 48;   // to below 2^48, 281 TB if it is bytes
inline constexpr uint32_t kRegular = uint32_t{kMaxExponent - kMinExponent} << kSubBits;

// Below the first regular bucket: zero, negative values, and what is too small to tell from zero.
inline constexpr uint32_t kUnderflow = 0;
inline constexpr uint32_t kOverflow = kRegular + 1;
inline constexpr uint32_t kBuckets = kRegular + 2;

// A shift by it leaves the bits that tell the bucket; the first regular bucket is 1.
inline constexpr int kShift = 52 - kSubBits;
inline constexpr uint64_t kFirst = uint64_t{1023 + kMinExponent} << kSubBits;

// Not for NaN.
constexpr uint32_t BucketOf(double value) {
  if (!(value > 0)) return kUnderflow;
  const uint64_t place = __builtin_bit_cast(uint64_t, value) >> kShift;
  if (place < kFirst) return kUnderflow;
  return place - kFirst < kRegular ? static_cast<uint32_t>(place - kFirst) + 1 : kOverflow;
}

// For a regular bucket and for kOverflow, which begins where the last one ends; 0 for kUnderflow.
constexpr double LowerBound(uint32_t bucket) {
  if (bucket == kUnderflow) return 0;
  return __builtin_bit_cast(double, (kFirst + bucket - 1) << kShift);
}

// Infinity for kOverflow.
constexpr double UpperBound(uint32_t bucket) {
  return bucket == kOverflow ? __builtin_huge_val() : LowerBound(bucket + 1);
}

}  // namespace sonde::histogram
