// The clock of the interposers: two readings around every call are most of what they cost.
//
// The clock is the processor's own counter where it runs at one rate in all states (x86: invariant
// TSC, Arm: the generic timer), else CLOCK_MONOTONIC. No processor-independent way tells a program
// the rate of a TSC, so it is measured. For the first kSettleNs the rate is that from the library's
// start to the present: times are off by parts in a thousand at most. From then on the rate found
// by then is kept, exact to some 10^-5.
//
// Thread safety: any thread, signal handlers too.
#pragma once

#include <stdint.h>
#include <time.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif

namespace sonde::interpose {

class TickClock {
 public:
  constexpr TickClock() = default;

  // When the library starts, before any reading.
  void Start() {
#if defined(__x86_64__)
    unsigned a = 0, b = 0, c = 0, d = 0;
    counter_ = __get_cpuid(0x80000007, &a, &b, &c, &d) != 0 && (d & (1u << 8)) != 0;
#elif defined(__aarch64__)
    counter_ = true;
    uint64_t hertz = 0;
    asm volatile("mrs %0, cntfrq_el0" : "=r"(hertz));
    seconds_ = hertz == 0 ? 0 : 1.0 / static_cast<double>(hertz);
    counter_ = hertz != 0;
#endif
    if (!counter_) seconds_ = 1e-9;
    first_ticks_ = Now();
    first_ns_ = Monotonic();
  }

  // Ticks; only differences mean something.
  uint64_t Now() const {
    if (!counter_) return Monotonic();
#if defined(__x86_64__)
    return __rdtsc();
#elif defined(__aarch64__)
    uint64_t ticks = 0;
    asm volatile("mrs %0, cntvct_el0" : "=r"(ticks)::"memory");
    return ticks;
#else
    return Monotonic();
#endif
  }

  // A difference of two readings in seconds. Processors' counters may differ by a few ticks, so a
  // difference may be negative: it gives 0.
  double Seconds(uint64_t ticks) {
    const auto signed_ticks = static_cast<int64_t>(ticks);
    if (signed_ticks <= 0) return 0;
    double scale = 0;
    __atomic_load(&seconds_, &scale, __ATOMIC_RELAXED);
    if (__builtin_expect(scale == 0, 0)) scale = Measure();
    return static_cast<double>(signed_ticks) * scale;
  }

 private:
  static constexpr uint64_t kSettleNs = 20'000'000;

  static uint64_t Monotonic() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
  }

  double Measure() {
    const uint64_t ns = Monotonic() - first_ns_;
    const uint64_t ticks = Now() - first_ticks_;
    if (ticks == 0) return 0;
    double scale = 1e-9 * static_cast<double>(ns) / static_cast<double>(ticks);
    if (ns >= kSettleNs) __atomic_store(&seconds_, &scale, __ATOMIC_RELAXED);
    return scale;
  }

  bool counter_ = false;
  double seconds_ = 0;  // in a tick; 0: not settled
  uint64_t first_ticks_ = 0;
  uint64_t first_ns_ = 0;
};

}  // namespace sonde::interpose
