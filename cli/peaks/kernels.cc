#include "cli/peaks/kernels.h"

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace sonde::cli::peaks {

std::vector<FmaKernel> FmaKernels() {
  std::vector<FmaKernel> kernels = {FmaBase()};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) kernels.push_back(FmaAvx2());
  if (__builtin_cpu_supports("avx512f")) kernels.push_back(FmaAvx512());
#endif
  return kernels;
}

void Triad(std::span<double> a, std::span<const double> b, std::span<const double> c) {
  double* __restrict to = a.data();
  const double* __restrict left = b.data();
  const double* __restrict right = c.data();
  for (size_t i = 0; i < a.size(); ++i) to[i] = left[i] + kTriadFactor * right[i];
}

#if defined(__x86_64__)
void TriadPastCaches(std::span<double> a, std::span<const double> b, std::span<const double> c) {
  const __m128d factor = _mm_set1_pd(kTriadFactor);
  size_t i = 0;
  for (; i + 2 <= a.size(); i += 2) {
    const __m128d product = _mm_mul_pd(factor, _mm_loadu_pd(&c[i]));
    _mm_stream_pd(&a[i], _mm_add_pd(_mm_loadu_pd(&b[i]), product));
  }
  _mm_sfence();
  for (; i < a.size(); ++i) a[i] = b[i] + kTriadFactor * c[i];
}
#else
void TriadPastCaches(std::span<double> a, std::span<const double> b, std::span<const double> c) {
  Triad(a, b, c);
}
#endif

}  // namespace sonde::cli::peaks
