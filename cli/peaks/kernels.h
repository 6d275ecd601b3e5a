// The loops by which a node's peaks are measured. They only compute; cli/peaks/measure.h says for
// how long and on which processors.
//
// Thread safety: functions without state; a triad's arrays are the caller's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace sonde::cli::peaks {

// Fused multiply-adds in one width of vectors (fma_loop.h), in double and single precision.
struct FmaKernel {
  std::string_view name;  // "AVX-512"
  double (*in_double)(uint64_t rounds);
  double flops_of_double_round;
  double (*in_single)(uint64_t rounds);
  double flops_of_single_round;
};

// Those that this processor can run. Wider vectors are not always faster, as some processors lower
// their clock for them.
std::vector<FmaKernel> FmaKernels();

// STREAM's triad, a_i = b_i + s c_i (McCalpin, "Memory bandwidth and machine balance in current
// high performance computers", IEEE TCCA Newsletter, 1995).
inline constexpr double kTriadFactor = 3;  // s, as in stream.c
// As STREAM counts: two elements read and one written. A processor that reads a line before it
// writes it moves a third more.
inline constexpr double kTriadBytes = 24;

// All three have as many elements; `a` is overwritten.
void Triad(std::span<double> a, std::span<const double> b, std::span<const double> c);
// The same with stores that go past the caches, so that no line is read before it is written. `a`
// lies at a multiple of 16 bytes. Where there are no such stores it is the same as Triad.
void TriadPastCaches(std::span<double> a, std::span<const double> b, std::span<const double> c);

// Of one file each, for kernels.cc.
FmaKernel FmaBase();
FmaKernel FmaAvx2();
FmaKernel FmaAvx512();

}  // namespace sonde::cli::peaks
