// A sum of counts that stays at the largest number instead of beginning anew at 0.
//
// Thread safety: a function without state.
#pragma once

#include <cstdint>

namespace sonde {

constexpr uint64_t SaturatingSum(uint64_t a, uint64_t b) {
  return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

}  // namespace sonde
