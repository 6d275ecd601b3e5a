#include "insight/hints/facts.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace sonde::insight {
namespace {

constexpr FactInfo kFacts[] = {
    // The step and what was asked for.
    {"duration", "seconds", "of the step"},
    {"nodes", "1", "nodes of the step"},
    {"tasks", "1", "tasks of the step"},
    {"tasks_per_node", "1", "in the mean"},
    {"completed", "1", "1: the step ended well, 0: it did not; not known while it runs"},
    {"timed_out", "1", "1: the time limit ended it"},
    {"time_limit", "seconds", "of the job; not known without a limit"},
    {"queue_wait", "seconds", "from the job's submission to its begin"},
    {"cpus", "1", "of the step: its control groups', or what it asked for"},
    {"cpus_per_task", "1", "of these, for each task"},
    {"threads_per_core", "1", "of a processor, as CPUs are counted"},
    {"has_gpus", "1", "1: the job has GPUs"},
    {"mem_option", "text", "how memory was asked for: --mem or --mem-per-cpu"},
    {"mem_parts", "1", "1, or the CPUs of a node, among which --mem-per-cpu divides its memory"},
    // The whole job, where it is over; of its steps in the archive.
    {"job_time_used", "seconds", "of the time limit, from its begin to the last step's end"},
    {"job_memory_peak", "bytes", "of the tasks of the node with the most, of all steps"},
    {"job_gpus", "1", "GPUs of a node that were seen"},
    {"job_gpus_idle", "1", "of these, those that did nothing in any step on any node"},
    // Processors.
    {"cpus_busy", "1", "in the mean: CPU time of the tasks per second"},
    {"cpus_most", "1", "that were busy at a time, but for the busiest twentieth of the ticks"},
    {"cpu_share", "ratio", "of the time of the tasks' CPUs in which they were busy"},
    {"cpu_of_task", "ratio", "CPU time of a task per second, in the mean"},
    {"system_share", "ratio", "of the CPU time, in the kernel"},
    {"threads_per_task", "1", "in the mean"},
    {"processes_per_task", "1", "in the mean"},
    {"cpu_imbalance", "ratio", "CPU time of the busiest task over the mean, less 1"},
    {"cpu_most_by", "text", "the busiest task"},
    {"cpu_most_share", "ratio", "CPU time of the busiest task per second"},
    {"cpu_least_by", "text", "the least busy task"},
    {"cpu_least_share", "ratio", "CPU time of the least busy task per second"},
    {"serial_share", "ratio", "of the time, in which one CPU, or one rank, had work, of several"},
    {"cpus_else", "1", "CPUs, or ranks, that had work at the other times, in the mean"},
    {"throttled_share", "ratio", "of the tasks' CPU time and this, held back by a CPU limit"},
    {"stolen_share", "ratio", "of the nodes' CPU time, taken by the host of virtual machines"},
    {"cpu_pressure", "ratio", "of the time, in which some process of the step waited for a CPU"},
    {"cpu_wanted", "ratio",
     "of a task's time, in which it was busy or, if the machine was, may have waited for a CPU"},
    {"others_cpus", "1", "that others than the step kept busy on a node, in the mean"},
    // Processors' own counters.
    {"instructions_per_cycle", "1", "in the mean"},
    {"memory_stalls", "ratio", "of the cycles, waiting for memory or caches"},
    {"cache_miss_ratio", "ratio", "of the requests to the last cache, not served by it"},
    {"branch_miss_ratio", "ratio", "of the branches, predicted wrongly"},
    {"vector_share", "ratio", "of the floating point operations, by vector instructions"},
    {"flops", "flops_per_second", "of the step"},
    {"memory_bandwidth", "bytes_per_second", "between memory and caches, of the step"},
    // MPI.
    {"mpi_share", "ratio", "of the tasks' time, in MPI"},
    {"mpi_wait_share", "ratio", "of the tasks' time, in calls that wait for other ranks"},
    {"mpi_collective_share", "ratio", "of the tasks' time, in collective calls"},
    {"mpi_least_share", "ratio", "of its time, in MPI, of the rank with the least of it"},
    {"mpi_most_share", "ratio", "of its time, in MPI, of the rank with the most of it"},
    {"mpi_least_by", "text", "the rank with the least time in MPI: the others wait for it"},
    {"mpi_least_node", "text", "its node"},
    {"mpi_most_by", "text", "the rank with the most time in MPI"},
    {"awaited_cpu", "ratio",
     "how much of a CPU the awaited rank got outside of MPI, beside the median rank"},
    {"awaited_work", "ratio", "what it computed beside the median of the others, less 1"},
    {"awaited_excess", "ratio", "of what it computed, what is more than the mean of all ranks"},
    {"awaited_io", "ratio", "of its time, in calls for files, or blocked in I/O"},
    {"awaited_held", "ratio",
     "of its time, stopped, or what its node was more held up than others: CPU taken by the host, "
     "limits, waiting for a CPU"},
    {"mpi_message", "bytes", "that one call sends, in the mean"},
    // I/O.
    {"io_share", "ratio", "of the time of the tasks' processes, in calls for files"},
    {"io_blocked", "ratio", "of the samples of the tasks' processes that waited for I/O"},
    {"read_size", "bytes", "of a read, in the mean"},
    {"write_size", "bytes", "of a write, in the mean"},
    {"reads_per_second", "1", "of a task"},
    {"writes_per_second", "1", "of a task"},
    {"sync_share", "ratio", "of the time in calls for files, to have them on the disk"},
    {"metadata_share", "ratio", "of the time in calls for files, to open, close and look"},
    {"read_bytes", "bytes", "by all tasks' calls, from whatever"},
    {"written_bytes", "bytes", "by all tasks' calls, to whatever"},
    {"stored_bytes", "bytes", "of what was written, what goes to storage"},
    // Memory.
    {"memory_limit", "bytes", "of a node: what the step may use there"},
    {"memory_asked", "bytes", "of a node, if the job asked for some"},
    {"memory_peak", "bytes", "of the tasks of the node with the most"},
    {"memory_peak_by", "text", "that node"},
    {"memory_of_task", "bytes", "resident, in the mean"},
    {"memory_growth", "bytes", "an hour: how much the tasks' memory on all nodes grew to the end"},
    {"memory_grown", "bytes", "in all, while it grew"},
    {"memory_at_end", "bytes", "of all tasks together"},
    {"memory_steady", "ratio", "of the parts of the step's time, in which it grew"},
    {"huge_page_share", "ratio",
     "of the tasks' memory, that may be in huge pages: as much as the nodes' programs have in "
     "them"},
    {"swapped_bytes", "bytes", "read from and written to swap"},
    {"major_faults_per_second", "1", "page faults with I/O, of a task"},
    {"oom_kills", "1", "processes killed for want of memory"},
    // GPUs.
    {"gpu_busy", "ratio", "in the mean, of the GPUs that were seen"},
    {"gpu_memory_peak", "bytes", "of one GPU"},
    {"gpu_throttled", "ratio", "of the time, in which a GPU's clock was held down"},
};

}  // namespace

std::span<const FactInfo> FactList() { return kFacts; }

const FactInfo* FindFact(std::string_view name) {
  const auto* const found = std::find_if(std::begin(kFacts), std::end(kFacts),
                                         [&](const FactInfo& one) { return one.name == name; });
  return found == std::end(kFacts) ? nullptr : found;
}

void Facts::Set(std::string_view name, double value) {
  assert(FindFact(name) != nullptr && FindFact(name)->unit != "text");
  numbers_[std::string(name)] = value;
}

void Facts::SetText(std::string_view name, std::string_view text) {
  assert(FindFact(name) != nullptr && FindFact(name)->unit == "text");
  texts_[std::string(name)] = text;
}

double Facts::Number(std::string_view name) const {
  const auto found = numbers_.find(name);
  return found == numbers_.end() ? std::numeric_limits<double>::quiet_NaN() : found->second;
}

std::string_view Facts::Text(std::string_view name) const {
  const auto found = texts_.find(name);
  return found == texts_.end() ? std::string_view() : found->second;
}

}  // namespace sonde::insight
