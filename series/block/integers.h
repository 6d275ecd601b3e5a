// Doubles as integers, as docs/format.md has them: whole numbers less a common power of two,
// decimals, or the doubles' own bits. Every double comes back bit for bit.
//
// Thread safety: functions without state.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "series/block/block.h"
#include "series/block/format.h"

namespace sonde::block_format {

// The present values of one column as integers, and how they stand for doubles.
struct Integers {
  std::array<int64_t, kMaxBlockRows> values;
  size_t count = 0;  // present values
  uint8_t scale = 0;

  std::span<int64_t> present() { return {values.data(), count}; }
};

// Whether all values have the same bits. `column` is not empty.
bool IsConstant(std::span<const double> column);
// Uses the scale that gives the smallest integers; if no other fits, the bits, which always do.
// False, and nothing of use in `out`, if a value is missing.
bool ToIntegers(std::span<const double> values, Integers& out);
// The integers of values whose scale ToIntegers found.
void ToIntegersOfScale(std::span<const double> values, uint8_t scale, int64_t* out);
// The way back. False, and nothing of use in `out`, if there is no such scale.
bool ToDoubles(uint8_t scale, std::span<const int64_t> integers, double* out);

}  // namespace sonde::block_format
