// The arithmetic loop for AVX2, compiled with its instructions (cli/CMakeLists.txt).
#include "cli/peaks/fma_loop.h"
#include "cli/peaks/kernels.h"

namespace sonde::cli::peaks {
namespace {

struct Avx2 {
  static constexpr size_t kBytes = 32;
  static constexpr size_t kAccumulators = 12;
};

}  // namespace

FmaKernel FmaAvx2() {
  return {"AVX2", FmaLoop<Avx2, double>, FlopsOfRound<Avx2, double>(), FmaLoop<Avx2, float>,
          FlopsOfRound<Avx2, float>()};
}

}  // namespace sonde::cli::peaks
