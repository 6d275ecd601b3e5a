#include "insight/steps/watched.h"

#include <algorithm>
#include <array>

namespace sonde::insight {
namespace {

constexpr double kMegabyte = 1 << 20;

constexpr WatchedSeries kStragglerMetrics[] = {
    {"task_cpu_seconds_total", "CPU time", "CPUs", "", "", 0, 0.02, 0.01},
    {"mpi_seconds_total", "time in MPI", "ratio", "", "", 0, 0.02},
    {"task_perf_instructions_total", "instructions", "1/s", "", "", 0, 1e6},
};

constexpr WatchedSeries kNodeSuspects[] = {
    {"cgroup_cpu_throttled_seconds_total", "throttled by the CPU limit", "s/s", "", "", 1, 0.02},
    {"node_cpu_core_throttles_total", "cores throttled by heat", "1/s", "", "", 1, 0.05},
    {"node_cpu_package_throttles_total", "packages throttled by heat", "1/s", "", "", 1, 0.05},
    {"node_cpu_frequency_mean_hertz", "CPU frequency", "hertz", "", "", -1, 5e7},
    {"node_package_temperature_celsius", "package temperature", "celsius", "", "", 1, 5},
    {"node_cpu_seconds_total", "CPU time stolen by the host", "CPUs", "mode", "steal", 1, 0.02},
    {"node_memory_MemAvailable_bytes", "available memory", "bytes", "", "", -1, 256 * kMegabyte},
    {"cgroup_memory_high_events_total", "held up at memory.high", "1/s", "", "", 1, 0.1},
    {"cgroup_memory_limit_events_total", "memory limit hit", "1/s", "", "", 1, 0.1},
    {"node_vmstat_pswpin_bytes_total", "read from swap", "bytes/s", "", "", 1, 65536},
    {"node_vmstat_pswpout_bytes_total", "written to swap", "bytes/s", "", "", 1, 65536},
    {"node_vmstat_pgsteal_direct_bytes_total", "memory reclaimed while programs waited", "bytes/s",
     "", "", 1, 65536},
    {"node_network_receive_errs_total", "receive errors", "1/s", "", "", 1, 0.1},
    {"node_network_transmit_errs_total", "transmit errors", "1/s", "", "", 1, 0.1},
    {"node_network_receive_drop_total", "received packets dropped", "1/s", "", "", 1, 1},
    {"node_netstat_Tcp_RetransSegs_total", "TCP retransmissions", "1/s", "", "", 1, 1},
    {"node_infiniband_port_errors_received_total", "InfiniBand errors", "1/s", "", "", 1, 0.1},
    {"node_infiniband_port_discards_transmitted_total", "InfiniBand discards", "1/s", "", "", 1,
     0.1},
    {"node_nfs_rpc_retransmissions_total", "NFS retransmissions", "1/s", "", "", 1, 0.1},
    {"node_pressure_cpu_waiting_seconds_total", "CPU pressure", "ratio", "", "", 1, 0.05},
    {"node_pressure_io_stalled_seconds_total", "I/O pressure", "ratio", "", "", 1, 0.05},
    {"node_pressure_memory_waiting_seconds_total", "memory pressure", "ratio", "", "", 1, 0.02},
    {"cgroup_pressure_cpu_waiting_seconds_total", "CPU pressure of the step", "ratio", "", "", 1,
     0.05},
    {"cgroup_pressure_io_waiting_seconds_total", "I/O pressure of the step", "ratio", "", "", 1,
     0.05},
    {"cgroup_pressure_memory_waiting_seconds_total", "memory pressure of the step", "ratio", "", "",
     1, 0.02},
    {"node_procs_blocked", "threads waiting for I/O", "1", "", "", 1, 0.5},
    {"gpu_throttled", "GPU clock held down", "ratio", "", "", 1, 0.05},
};

constexpr WatchedSeries kRankSuspects[] = {
    {"task_processes_stopped", "processes stopped by a signal", "1", "", "", 1, 0.05},
    {"task_processes_blocked", "processes waiting for I/O", "1", "", "", 1, 0.2},
    {"task_major_faults_total", "page faults with I/O", "1/s", "", "", 1, 1},
    {"task_resident_memory_bytes", "resident memory", "bytes", "", "", 1, 64 * kMegabyte},
    {"task_read_bytes_total", "read from storage", "bytes/s", "", "", 1, kMegabyte},
    {"task_written_bytes_total", "written to storage", "bytes/s", "", "", 1, kMegabyte},
    {"task_frequency_hertz", "CPU frequency", "hertz", "", "", -1, 5e7},
    {"task_perf_cpu_migrations_total", "moves between CPUs", "1/s", "", "", 1, 5},
    {"task_cache_miss_ratio", "cache misses", "ratio", "", "", 1, 0.05},
    {"task_memory_stall_ratio", "cycles waiting for memory", "ratio", "", "", 1, 0.05},
};

constexpr MainSeries kPhaseSeries[] = {
    {{"task_cpu_seconds_total", "CPU", "CPUs"}},
    {{"task_resident_memory_bytes", "memory", "bytes"}},
    {{"task_read_call_bytes_total", "read", "bytes/s"}},
    {{"task_write_call_bytes_total", "written", "bytes/s"}},
    {{"node_network_receive_bytes_total", "network", "bytes/s"},
     "node_network_transmit_bytes_total"},
    {{"mpi_seconds_total", "MPI", "CPUs"}},
};

constexpr std::array<std::string_view, 10> kHousePrefixes = {
    "node_", "task_", "sonde_", "cgroup_", "perf_", "gpu_", "power_", "mpi_", "io_", "function_"};

}  // namespace

std::span<const WatchedSeries> StragglerMetrics() { return kStragglerMetrics; }
std::span<const WatchedSeries> NodeSuspects() { return kNodeSuspects; }
std::span<const WatchedSeries> RankSuspects() { return kRankSuspects; }
std::span<const MainSeries> PhaseSeries() { return kPhaseSeries; }

bool IsHouseMetric(std::string_view name) {
  return std::any_of(kHousePrefixes.begin(), kHousePrefixes.end(),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

}  // namespace sonde::insight
