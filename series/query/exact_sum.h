// Sums of doubles that do not depend on the order in which they were added, nor on how they were
// grouped: everything is kept exactly and rounded once, when the sum is asked for. So nodes that
// add on the way up the tree get, bit for bit, the sum that one place would get.
//
// Two forms. Nearly always a sum fits a pair of doubles without loss: `high` is the sum rounded to
// nearest, `low` the rest (Knuth's TwoSum says whether anything would be lost). A sum that does not
// fit, as 1e300 + 1, or passes the largest double on the way, goes into a BigSum, an integer of
// 2304 bits that counts in units of 2^-1074, the smallest double there is. Both give the exact sum
// rounded to nearest, ties to even, so it does not matter which of them holds it.
//
// Infinities and NaN cannot be summed exactly: one infinity makes the sum infinite, two of
// different sign make it NaN, and NaN stays.
//
// Thread safety: values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/bytes.h"

namespace sonde {

// A sum of up to 2^64 finite doubles, exactly.
class BigSum {
 public:
  // `value` is finite.
  void Add(double value);
  void Add(const BigSum& other);
  // To nearest, ties to even; infinite beyond the largest double.
  double Value() const;

  // Sign and magnitude, without the words of zeros at both ends.
  void Encode(ByteWriter& out) const;
  // Turns `in` bad on bytes that are no sum.
  static BigSum Decode(ByteReader& in);

  bool operator==(const BigSum&) const = default;

  // Doubles take 33 words of 64 bits; the rest is for carries and the sign.
  static constexpr size_t kWords = 36;
  // A sum that is read has at most this many words, so that sums of a lying peer cannot overflow
  // when they are added up.
  static constexpr size_t kMaxReadWords = 34;

 private:
  using Words = std::array<uint64_t, kWords>;  // two's complement, the lowest first

  bool Negative() const { return words_.back() >> 63 != 0; }
  Words Magnitude() const;
  void AddAt(size_t word, uint64_t low, uint64_t high);
  void SubtractAt(size_t word, uint64_t low, uint64_t high);

  Words words_{};
};

// Adds `value` to the sum high + low, of which `high` is the rounded value. False, and nothing
// changed, if the pair cannot hold the result without loss: the caller then needs a BigSum.
bool AddExactly(double& high, double& low, double value);

}  // namespace sonde
