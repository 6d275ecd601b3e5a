// The arithmetic loop for what every processor of the architecture has: SSE2 on x86, without a
// fused multiply-add; Neon on Arm, with one; vectors of 16 bytes elsewhere, as the compiler makes
// them.
#include "cli/peaks/fma_loop.h"
#include "cli/peaks/kernels.h"

namespace sonde::cli::peaks {
namespace {

struct Base {
  static constexpr size_t kBytes = 16;
#if defined(__x86_64__)
  static constexpr size_t kAccumulators = 12;  // of 16 registers
#else
  static constexpr size_t kAccumulators = 24;  // of 32
#endif
};

#if defined(__x86_64__)
constexpr std::string_view kName = "SSE2";
#elif defined(__aarch64__)
constexpr std::string_view kName = "Neon";
#else
constexpr std::string_view kName = "16 bytes";
#endif

}  // namespace

FmaKernel FmaBase() {
  return {kName, FmaLoop<Base, double>, FlopsOfRound<Base, double>(), FmaLoop<Base, float>,
          FlopsOfRound<Base, float>()};
}

}  // namespace sonde::cli::peaks
