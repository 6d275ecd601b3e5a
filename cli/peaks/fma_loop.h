// The loop that measures arithmetic, to be compiled once for each width of vectors.
//
// kAccumulators vectors are each multiplied by one number and added to another, over and over:
//
//   a_i = a_i x + y
//
// so every instruction depends on the one kAccumulators before it and on no memory. That many hide
// the latency of the fused multiply-add: 4 cycles on 2 units need 8 (Intel Skylake, AMD Zen), 4
// cycles on 4 units 16 (Arm Neoverse V1). They fit into the registers with the two constants.
// Counted are two operations for each element: a multiplication and an addition.
//
// Each file that includes this has an `Isa` of its own in an unnamed namespace, so that no code for
// wide vectors is shared with files for narrow ones.
//
// Thread safety: functions without state.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sonde::cli::peaks {

inline constexpr double kFmaFactor = 0.999;  // x
inline constexpr double kFmaAddend = 0.001;  // y: every a_i goes to y / (1 - x) = 1

// Isa: kBytes of a vector, kAccumulators. Gives the sum of all elements, which depends on all of
// the work; element e of accumulator i begins as i + e / lanes.
template <typename Isa, typename Scalar>
double FmaLoop(uint64_t rounds) {
  using Vector [[gnu::vector_size(Isa::kBytes)]] = Scalar;
  constexpr size_t kLanes = Isa::kBytes / sizeof(Scalar);
  Vector a[Isa::kAccumulators];
  Vector x;
  Vector y;
  for (size_t e = 0; e < kLanes; ++e) {
    x[e] = static_cast<Scalar>(kFmaFactor);
    y[e] = static_cast<Scalar>(kFmaAddend);
    for (size_t i = 0; i < Isa::kAccumulators; ++i) {
      a[i][e] = static_cast<Scalar>(i) + static_cast<Scalar>(e) / static_cast<Scalar>(kLanes);
    }
  }
  for (uint64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 32
    for (size_t i = 0; i < Isa::kAccumulators; ++i) a[i] = a[i] * x + y;
  }
  double sum = 0;
  for (size_t i = 0; i < Isa::kAccumulators; ++i) {
    for (size_t e = 0; e < kLanes; ++e) sum += static_cast<double>(a[i][e]);
  }
  return sum;
}

// Of all accumulators of one round.
template <typename Isa, typename Scalar>
constexpr double FlopsOfRound() {
  return 2.0 * Isa::kAccumulators * (static_cast<double>(Isa::kBytes) / sizeof(Scalar));
}

}  // namespace sonde::cli::peaks
