// What held a step or a phase up, as far as that shows without the counters of FLOP and bytes that
// a roofline needs. Looked at in this order; the first that holds is named:
//
//   gpu        GPUs were busy for kBusyGpu of the time, and the CPUs were not kBusyCpus
//   paging     kPaging page faults with I/O a second for each CPU or more
//   waiting    less than kIdleCpus of the CPUs' time was used; on what, if time in MPI is
//              kMostOfIt of what was not used, or I/O pressure that much of the time
//   memory     kMemoryStall of the cycles or more waited for memory or caches
//   compute    less than half of that, or, where that is not counted, kManyInstructions per cycle
//   memory?    fewer than kFewInstructions per cycle, with kManyMisses of the requests to the last
//              cache missed
//   unknown    the CPUs were busy: whether with arithmetic or with memory cannot be told apart
//
// kMemoryStall is the threshold of Intel's VTune for "memory bound", in the sense of Yasin, "A
// Top-Down method for performance analysis and counters architecture", ISPASS 2014. The other
// numbers are conventions; nobody has measured how often they are right.
//
// Thread safety: values and functions without state.
#pragma once

#include <limits>
#include <string>
#include <string_view>

namespace sonde::insight {

inline constexpr double kBusyGpu = 0.5;
inline constexpr double kBusyCpus = 0.8;
inline constexpr double kIdleCpus = 0.6;
inline constexpr double kMostOfIt = 0.5;
inline constexpr double kPaging = 10;
inline constexpr double kMemoryStall = 0.2;
inline constexpr double kManyInstructions = 2;
inline constexpr double kFewInstructions = 0.7;
inline constexpr double kManyMisses = 0.3;

// Means over the time in question; NaN: not measured.
struct Evidence {
  static constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  double cpus = kNone;             // that the step had
  double busy_cpus = kNone;        // kept busy by its tasks
  double mpi_cpus = kNone;         // in calls of MPI, most of which wait without a CPU or spin
  double io_pressure = kNone;      // share of the time in which no task got on for I/O
  double faults = kNone;           // page faults with I/O per second
  double gpu_utilization = kNone;  // ratio
  double instructions_per_cycle = kNone;
  double cache_miss_ratio = kNone;
  double memory_stall_ratio = kNone;
};

struct Bottleneck {
  std::string_view what;  // "gpu", "paging", "waiting", "memory", "compute", "unknown"
  std::string why;        // in words, with the numbers
};

Bottleneck BottleneckOf(const Evidence& evidence);

}  // namespace sonde::insight
