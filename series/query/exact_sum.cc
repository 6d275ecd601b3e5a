#include "series/query/exact_sum.h"

#include <bit>
#include <cmath>
#include <limits>

namespace sonde {
namespace {

constexpr int kMantissaBits = 52;
constexpr int kUnitExponent = -1074;  // a BigSum counts in units of 2^-1074

// The rest that fl(a + b) leaves out, exactly; NaN or infinite if a step overflowed.
double LeftOut(double a, double b, double sum) {
  const double b_part = sum - a;
  const double a_part = sum - b_part;
  return (a - a_part) + (b - b_part);
}

struct Parts {
  uint64_t mantissa;
  unsigned shift;  // the value is mantissa * 2^(shift - 1074)
};

Parts Split(double value) {
  const auto bits = std::bit_cast<uint64_t>(value);
  const uint64_t fraction = bits & ((uint64_t{1} << kMantissaBits) - 1);
  const auto exponent = static_cast<unsigned>(bits >> kMantissaBits) & 0x7ff;
  if (exponent == 0) return {fraction, 0};
  return {fraction | uint64_t{1} << kMantissaBits, exponent - 1};
}

}  // namespace

bool AddExactly(double& high, double& low, double value) {
  const double sum = high + value;
  if (!std::isfinite(high) || !std::isfinite(value)) {
    high = std::isnan(sum) ? std::numeric_limits<double>::quiet_NaN() : sum;
    low = 0;
    return true;
  }
  if (!std::isfinite(sum)) return false;
  const double left = LeftOut(high, value, sum);
  if (left == 0 && low == 0) {
    high = sum;
    return true;
  }
  const double rest = low + left;
  if (!std::isfinite(left) || LeftOut(low, left, rest) != 0) return false;
  const double rounded = sum + rest;
  const double remainder = LeftOut(sum, rest, rounded);
  if (!std::isfinite(rounded) || !std::isfinite(remainder)) return false;
  high = rounded;
  low = remainder;
  return true;
}

void BigSum::AddAt(size_t word, uint64_t low, uint64_t high) {
  unsigned carry = __builtin_add_overflow(words_[word], low, &words_[word]) ? 1 : 0;
  for (size_t i = word + 1; i < kWords && (high != 0 || carry != 0); ++i) {
    unsigned next = __builtin_add_overflow(words_[i], high, &words_[i]) ? 1 : 0;
    next += __builtin_add_overflow(words_[i], uint64_t{carry}, &words_[i]) ? 1 : 0;
    carry = next;
    high = 0;
  }
}

void BigSum::SubtractAt(size_t word, uint64_t low, uint64_t high) {
  unsigned borrow = __builtin_sub_overflow(words_[word], low, &words_[word]) ? 1 : 0;
  for (size_t i = word + 1; i < kWords && (high != 0 || borrow != 0); ++i) {
    unsigned next = __builtin_sub_overflow(words_[i], high, &words_[i]) ? 1 : 0;
    next += __builtin_sub_overflow(words_[i], uint64_t{borrow}, &words_[i]) ? 1 : 0;
    borrow = next;
    high = 0;
  }
}

void BigSum::Add(double value) {
  const auto [mantissa, shift] = Split(value);
  const unsigned bit = shift % 64;
  const uint64_t low = mantissa << bit;
  const uint64_t high = bit == 0 ? 0 : mantissa >> (64 - bit);
  std::signbit(value) ? SubtractAt(shift / 64, low, high) : AddAt(shift / 64, low, high);
}

void BigSum::Add(const BigSum& other) {
  unsigned carry = 0;
  for (size_t i = 0; i < kWords; ++i) {
    unsigned next = __builtin_add_overflow(words_[i], other.words_[i], &words_[i]) ? 1 : 0;
    next += __builtin_add_overflow(words_[i], uint64_t{carry}, &words_[i]) ? 1 : 0;
    carry = next;
  }
}

BigSum::Words BigSum::Magnitude() const {
  if (!Negative()) return words_;
  BigSum positive;
  for (size_t i = 0; i < kWords; ++i) positive.words_[i] = ~words_[i];
  positive.AddAt(0, 1, 0);
  return positive.words_;
}

double BigSum::Value() const {
  const Words words = Magnitude();
  size_t top = kWords;
  while (top > 0 && words[top - 1] == 0) --top;
  if (top == 0) return 0;
  const auto bit = [&](size_t i) { return (words[i / 64] >> (i % 64)) & 1; };
  const size_t highest = top * 64 - 1 - static_cast<size_t>(std::countl_zero(words[top - 1]));
  const double sign = Negative() ? -1 : 1;
  if (highest <= kMantissaBits) {
    return sign * std::ldexp(static_cast<double>(words[0]), kUnitExponent);
  }
  // The 53 bits from the highest on, and whether the bits below round them up.
  const size_t shift = highest - kMantissaBits;
  uint64_t mantissa = words[shift / 64] >> (shift % 64);
  if (shift % 64 != 0 && shift / 64 + 1 < kWords) {
    mantissa |= words[shift / 64 + 1] << (64 - shift % 64);
  }
  mantissa &= (uint64_t{1} << (kMantissaBits + 1)) - 1;
  if (bit(shift - 1) != 0) {
    bool above_half = (mantissa & 1) != 0;
    for (size_t i = 0; i < shift - 1 && !above_half; ++i) above_half = bit(i) != 0;
    if (above_half) ++mantissa;
  }
  return sign * std::ldexp(static_cast<double>(mantissa), static_cast<int>(shift) + kUnitExponent);
}

void BigSum::Encode(ByteWriter& out) const {
  const Words words = Magnitude();
  size_t first = 0;
  size_t end = kWords;
  while (end > 0 && words[end - 1] == 0) --end;
  while (first < end && words[first] == 0) ++first;
  out.Fixed<uint8_t>(Negative() ? 1 : 0);
  out.Fixed(static_cast<uint8_t>(first));
  out.Fixed(static_cast<uint8_t>(end - first));
  for (size_t i = first; i < end; ++i) out.Fixed(words[i]);
}

BigSum BigSum::Decode(ByteReader& in) {
  const auto negative = in.Fixed<uint8_t>();
  const auto first = in.Fixed<uint8_t>();
  const auto count = in.Fixed<uint8_t>();
  BigSum sum;
  if (negative > 1 || size_t{first} + count > kMaxReadWords) {
    in.Fail();
    return sum;
  }
  for (size_t i = first; i < size_t{first} + count; ++i) sum.words_[i] = in.Fixed<uint64_t>();
  if (negative == 1) {
    BigSum zero;
    for (size_t i = 0; i < kWords; ++i) zero.words_[i] = ~sum.words_[i];
    zero.AddAt(0, 1, 0);
    return zero;
  }
  return sum;
}

}  // namespace sonde
