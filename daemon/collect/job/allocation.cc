#include "daemon/collect/job/allocation.h"

namespace sonde::collect {
namespace {

constexpr MetricDecl kAllocatedMemory = {
    "node_memory_allocated_bytes",
    "bytes",
    MetricType::kGauge,
    2,
    Reduction::kSum,
    "What Slurm has allocated of the node's memory to the step, or to "
    "the job if the step asked for "
    "none of its own; missing where Slurm does not allocate memory."};

}  // namespace

AllocationSource::AllocationSource(uint64_t memory_bytes) {
  series_.emplace_back().metric = Metric(kAllocatedMemory);
  values_.push_back(static_cast<double>(memory_bytes));
}

std::vector<MetricDecl> AllocationMetrics() { return {kAllocatedMemory}; }

}  // namespace sonde::collect
