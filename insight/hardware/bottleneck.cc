#include "insight/hardware/bottleneck.h"

#include <fmt/format.h>

#include <cmath>

namespace sonde::insight {
namespace {

std::string Share(double ratio) { return fmt::format("{:.0f} %", 100 * ratio); }

// Of a step whose CPUs were not used.
Bottleneck Waiting(const Evidence& e) {
  const double unused = e.cpus - e.busy_cpus;
  std::string why = fmt::format("{} of the CPUs' time was used", Share(e.busy_cpus / e.cpus));
  if (e.mpi_cpus >= kMostOfIt * unused) {
    why += fmt::format("; tasks were in MPI for {:.3g} CPUs' time", e.mpi_cpus);
  } else if (e.io_pressure >= kMostOfIt) {
    why += fmt::format("; for {} of the time all waited for I/O", Share(e.io_pressure));
  } else {
    why += "; what the tasks waited for does not show";
  }
  return {"waiting", std::move(why)};
}

// Of busy CPUs, by ratios of counters that are there although FLOP and bytes are not.
Bottleneck Busy(const Evidence& e) {
  if (e.memory_stall_ratio >= kMemoryStall) {
    return {"memory", fmt::format("{} of the cycles waited for memory or caches",
                                  Share(e.memory_stall_ratio))};
  }
  if (e.memory_stall_ratio < kMemoryStall / 2) {
    return {"compute", fmt::format("only {} of the cycles waited for memory or caches",
                                   Share(e.memory_stall_ratio))};
  }
  const double ipc = e.instructions_per_cycle;
  if (std::isnan(e.memory_stall_ratio) && ipc >= kManyInstructions) {
    return {"compute", fmt::format("{:.2g} instructions per cycle", ipc)};
  }
  if (ipc < kFewInstructions && e.cache_miss_ratio >= kManyMisses) {
    return {"memory", fmt::format("{:.2g} instructions per cycle, and {} of the requests to the "
                                  "last cache missed",
                                  ipc, Share(e.cache_miss_ratio))};
  }
  const std::string used =
      std::isnan(e.busy_cpus) || std::isnan(e.cpus)
          ? std::string()
          : fmt::format("{} of the CPUs' time was used: ", Share(e.busy_cpus / e.cpus));
  return {"unknown", used + "arithmetic and memory cannot be told apart without hardware counters"};
}

}  // namespace

Bottleneck BottleneckOf(const Evidence& e) {
  const double used = e.busy_cpus / e.cpus;
  if (e.gpu_utilization >= kBusyGpu && !(used >= kBusyCpus)) {
    return {"gpu", fmt::format("the GPUs were busy for {} of the time", Share(e.gpu_utilization))};
  }
  if (e.faults >= kPaging * e.cpus) {
    return {"paging", fmt::format("{:.0f} page faults a second were served by I/O", e.faults)};
  }
  if (used < kIdleCpus) return Waiting(e);
  if (std::isnan(e.busy_cpus) && std::isnan(e.instructions_per_cycle) &&
      std::isnan(e.memory_stall_ratio)) {
    return {"unknown", "neither hardware counters nor the CPUs' time were measured"};
  }
  return Busy(e);
}

}  // namespace sonde::insight
