#include "daemon/collect/job/cgroup_columns.h"

#include <iterator>

namespace sonde::collect {
namespace {

constexpr MetricDecl Counter(std::string_view name, std::string_view unit, std::string_view help) {
  return {name, unit, MetricType::kCounter, 2, Reduction::kSum, help};
}
constexpr MetricDecl Gauge(std::string_view name, std::string_view unit, std::string_view help) {
  return {name, unit, MetricType::kGauge, 2, Reduction::kSum, help};
}
constexpr MetricDecl Stalled(std::string_view name, std::string_view help) {
  return {name, "seconds", MetricType::kCounter, 2, Reduction::kMean, help};
}

constexpr MetricDecl kCpuSeconds =
    Counter("cgroup_cpu_seconds_total", "seconds",
            "Processor time of all the group's processes, those that ended included. Tag mode "
            "(user, system).");
constexpr MetricDecl kDecls[] = {
    kCpuSeconds,
    kCpuSeconds,
    Counter("cgroup_cpu_periods_total", "1",
            "Periods in which the group was runnable while its processor time was limited."),
    Counter("cgroup_cpu_throttled_periods_total", "1",
            "Periods in which it had used up its processor time and had to wait."),
    Counter("cgroup_cpu_throttled_seconds_total", "seconds",
            "Time for which it had to wait, added up over processors."),
    Gauge("cgroup_memory_bytes", "bytes",
          "Memory charged to the group: that of its processes, file cache and kernel objects."),
    Gauge("cgroup_memory_peak_bytes", "bytes", "The most that was ever charged to it."),
    Gauge("cgroup_memory_limit_bytes", "bytes",
          "Where processes are killed if nothing can be reclaimed; missing if there is no limit."),
    Gauge("cgroup_memory_high_bytes", "bytes",
          "Where processes are slowed down and memory is reclaimed; missing if there is no such "
          "limit (memory.high of version 2)."),
    Gauge("cgroup_memory_anon_bytes", "bytes", "Of it, memory that belongs to no file."),
    Gauge("cgroup_memory_file_bytes", "bytes",
          "Of it, file cache, with tmpfs and shared memory; most of it can be reclaimed."),
    Gauge("cgroup_memory_shmem_bytes", "bytes",
          "Of it, tmpfs (/dev/shm) and shared memory, which only swapping can reclaim."),
    Gauge("cgroup_memory_mapped_file_bytes", "bytes", "Of the file cache, what is mapped."),
    Gauge("cgroup_memory_dirty_bytes", "bytes",
          "Of the file cache, what is not yet written to storage."),
    Gauge("cgroup_memory_writeback_bytes", "bytes",
          "Of the file cache, what is being written to storage."),
    Gauge("cgroup_memory_slab_bytes", "bytes", "Of it, the kernel's own objects, such as inodes."),
    Gauge("cgroup_memory_kernel_stack_bytes", "bytes", "Of it, kernel stacks of threads."),
    Gauge("cgroup_memory_page_tables_bytes", "bytes", "Of it, page tables."),
    Gauge("cgroup_memory_sock_bytes", "bytes", "Of it, network buffers."),
    Counter("cgroup_memory_faults_total", "1", "Page faults."),
    Counter("cgroup_memory_major_faults_total", "1", "Page faults that needed I/O."),
    Gauge("cgroup_swap_bytes", "bytes", "Swap space in use."),
    Gauge("cgroup_swap_limit_bytes", "bytes",
          "Limit of swap space; missing if there is none (version 2)."),
    Counter("cgroup_memory_high_events_total", "1",
            "How often processes were slowed down for exceeding cgroup_memory_high_bytes."),
    Counter("cgroup_memory_limit_events_total", "1",
            "How often the limit was run into; mostly, memory was reclaimed and all went on."),
    Counter("cgroup_oom_events_total", "1",
            "How often the limit was run into and nothing could be reclaimed (version 2)."),
    Counter("cgroup_oom_kills_total", "1", "Processes that the kernel killed for want of memory."),
    Gauge("cgroup_pids", "1", "Processes and threads."),
    Gauge("cgroup_pids_limit", "1", "Limit of processes and threads; missing if there is none."),
    Gauge("cgroup_cpu_quota_cpus", "1",
          "How many processors' worth of time it may use; missing if there is no limit."),
    Gauge("cgroup_cpuset_cpus", "1",
          "Processors (hardware threads) its tasks may run on; missing if that is not limited."),
    Stalled("cgroup_pressure_cpu_waiting_seconds_total",
            "Time in which some process of the group waited for a processor."),
    Stalled("cgroup_pressure_cpu_stalled_seconds_total",
            "Time in which all processes of the group that had work waited for a processor."),
    Stalled("cgroup_pressure_io_waiting_seconds_total",
            "Time in which some process of the group waited for I/O."),
    Stalled("cgroup_pressure_io_stalled_seconds_total",
            "Time in which no process of the group got on for waiting for I/O."),
    Stalled("cgroup_pressure_memory_waiting_seconds_total",
            "Time in which some process of the group waited for memory."),
    Stalled("cgroup_pressure_memory_stalled_seconds_total",
            "Time in which no process of the group got on for waiting for memory."),
};
static_assert(std::size(kDecls) == kCgroupColumns);

constexpr CgroupDeviceField kDeviceFields[] = {
    {&CgroupDevice::read_bytes,
     Counter("cgroup_io_read_bytes_total", "bytes", "Bytes read from a device. Tag device.")},
    {&CgroupDevice::written_bytes,
     Counter("cgroup_io_written_bytes_total", "bytes",
             "Bytes written to a device, those of the file cache when they get there. Tag "
             "device.")},
    {&CgroupDevice::reads,
     Counter("cgroup_io_reads_total", "1", "Read requests to a device. Tag device.")},
    {&CgroupDevice::writes,
     Counter("cgroup_io_writes_total", "1", "Write requests to a device. Tag device.")},
};

}  // namespace

std::span<const MetricDecl> CgroupDecls() { return kDecls; }

std::span<const CgroupDeviceField> CgroupDeviceFields() { return kDeviceFields; }

}  // namespace sonde::collect
