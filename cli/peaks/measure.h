// Measures what the processors that this process may use do at most: bytes per second from memory,
// and floating-point operations per second.
//
//   memory      The best of the triads (kernels.h) over arrays that each are four times the sum of
//               the last caches, as STREAM's rules ask (stream.c 5.10), or a twelfth of the memory
//               that is free where that is less. Each thread's part lies where the thread has first
//               written it. A repetition lasts from when all threads begin until the last has
//               ended.
//   arithmetic  The best of all widths of vectors.
//
// One thread on each allowed CPU, pinned to it; then one alone. Other work on the machine makes it
// less than it could be, so the best repetition counts: short ones, until `repetitions` of them one
// after the other were not 1 % better than the best before, or `most_seconds` are over. What one
// thread can do, all can: the rates of all are at least those of one.
//
// Thread safety: one measurement at a time in a process; blocks for some seconds.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "insight/hardware/roofline.h"

namespace sonde::cli::peaks {

struct MeasureOptions {
  int repetitions = 30;
  double most_seconds = 1.5;  // of one loop
  double seconds = 0.01;      // of arithmetic, each repetition: less than a turn of the scheduler
  uint64_t array_bytes = 0;   // of each array; 0: by the caches
  // Told what is measured next, such as "memory, 64 CPUs".
  std::function<void(std::string_view)> on_progress;
  std::string proc = "/proc";
  std::string sys = "/sys";
};

// The CPUs that this process may run on, ascending.
std::vector<int> AllowedCpus();

// All last caches that these CPUs have, together, in bytes; 0: not known.
uint64_t LastCacheBytes(const std::string& sys, const std::vector<int>& cpus);

// kUnsupported if the kind of processor is not known; kLimit if there is not memory enough.
Result<insight::NodePeaks> Measure(const MeasureOptions& options);

}  // namespace sonde::cli::peaks
