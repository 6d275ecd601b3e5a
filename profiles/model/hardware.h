// How a step used its processors' units, its GPUs and its energy, as far as its level and its
// machines report it: the numbers, and the report's lines. A number that was not measured is NaN.
//
// Thread safety: values and functions without state.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "profiles/model/profile.h"

namespace sonde {

struct HardwareSummary {
  // Of the whole step: instructions per cycle, and cycles per second of processor time.
  double instructions_per_cycle = 0;
  double hertz = 0;
  std::string least_by, most_by;  // who had the fewest and most instructions per cycle
  double least = 0, most = 0;
  // Means over time of the step's sums.
  double flops_per_second = 0;
  double memory_bytes_per_second = 0;
  double arithmetic_intensity = 0;  // from these two
  double vector_ratio = 0;          // mean over tasks and time

  size_t gpus = 0;  // series of single devices, each the mean over the nodes that have the device
  double gpu_utilization = 0;  // ratio, mean
  double gpu_memory_peak = 0;  // bytes, of one GPU
  std::string gpu_memory_by;
  double gpu_watts = 0;  // mean, all GPUs together

  double step_joules = 0;  // processors and memory, the step's share
  double gpu_joules = 0;
};

HardwareSummary SummarizeHardware(const Profile& profile);

// Labels and texts, as in the report; an empty label continues the line before. No line for a
// number that was not measured.
std::vector<std::pair<std::string, std::string>> HardwareLines(const HardwareSummary& summary);

}  // namespace sonde
