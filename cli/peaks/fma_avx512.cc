// The arithmetic loop for AVX-512, compiled with its instructions (cli/CMakeLists.txt).
#include "cli/peaks/fma_loop.h"
#include "cli/peaks/kernels.h"

namespace sonde::cli::peaks {
namespace {

struct Avx512 {
  static constexpr size_t kBytes = 64;
  static constexpr size_t kAccumulators = 24;
};

}  // namespace

FmaKernel FmaAvx512() {
  return {"AVX-512", FmaLoop<Avx512, double>, FlopsOfRound<Avx512, double>(),
          FmaLoop<Avx512, float>, FlopsOfRound<Avx512, float>()};
}

}  // namespace sonde::cli::peaks
