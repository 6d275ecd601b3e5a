// What is told of a task: the metrics, and their columns.
//
// Thread safety: constants.
#pragma once

#include <cstddef>
#include <iterator>
#include <string_view>

#include "daemon/collect/job/task_files.h"
#include "daemon/collect/read/source.h"

namespace sonde::collect::task_metrics {

constexpr MetricDecl Counter(std::string_view name, std::string_view unit, std::string_view help) {
  return {name, unit, MetricType::kCounter, 2, Reduction::kSum, help};
}
constexpr MetricDecl Gauge(std::string_view name, std::string_view unit, std::string_view help) {
  return {name, unit, MetricType::kGauge, 2, Reduction::kSum, help};
}

inline constexpr MetricDecl kCpu =
    WithSpread(Counter("task_cpu_seconds_total", "seconds",
                       "Processor time of the task and its descendants. Tags task, mode (user, "
                       "system)."));

struct CounterColumn {
  TaskCounter counter;
  MetricDecl decl;
};
inline constexpr CounterColumn kCounters[] = {
    {kMinorFaults, Counter("task_minor_faults_total", "1", "Page faults served without I/O.")},
    {kMajorFaults, Counter("task_major_faults_total", "1", "Page faults that needed I/O.")},
    {kReadBytes,
     Counter("task_read_bytes_total", "bytes", "Bytes the task caused to be read from storage.")},
    {kWriteBytes, Counter("task_written_bytes_total", "bytes",
                          "Bytes the task caused to be written to storage, when it dirtied their "
                          "pages.")},
    {kCancelledBytes, Counter("task_cancelled_write_bytes_total", "bytes",
                              "Bytes the task kept from being written to storage, by cutting or "
                              "deleting files first: to be taken off task_written_bytes_total.")},
    {kCallReadBytes, Counter("task_read_call_bytes_total", "bytes",
                             "Bytes read by system calls, from whatever: files, pipes, caches.")},
    {kCallWriteBytes, Counter("task_write_call_bytes_total", "bytes",
                              "Bytes written by system calls, to whatever.")},
    {kReadCalls, Counter("task_read_calls_total", "1", "System calls that read.")},
    {kWriteCalls, Counter("task_write_calls_total", "1", "System calls that write.")},
};
inline constexpr MetricDecl kResident = WithSpread(
    Gauge("task_resident_memory_bytes", "bytes",
          "Resident memory of all its processes; pages that they share count for each."));
inline constexpr MetricDecl kPeak =
    Gauge("task_resident_memory_peak_bytes", "bytes",
          "The most resident memory seen so far: at a tick for all processes together, or at any "
          "time for one of them.");
inline constexpr MetricDecl kThreads = Gauge("task_threads", "1", "Threads of all its processes.");
inline constexpr MetricDecl kProcesses = Gauge("task_processes", "1", "Its processes.");
inline constexpr MetricDecl kVirtual =
    Gauge("task_virtual_memory_bytes", "bytes", "Address space of all its processes, used or not.");
inline constexpr MetricDecl kRunning =
    Gauge("task_processes_running", "1",
          "Its processes whose main thread was running or ready to run (state R).");
inline constexpr MetricDecl kBlocked =
    Gauge("task_processes_blocked", "1",
          "Its processes whose main thread was waiting for disk or network filesystem I/O (state "
          "D).");
inline constexpr MetricDecl kStopped =
    Gauge("task_processes_stopped", "1",
          "Its processes that a signal or a debugger has stopped, as in a suspended job (states T "
          "and t).");
inline constexpr MetricDecl kZombies =
    Gauge("task_processes_zombie", "1",
          "Its processes that ended and were not yet waited for (state Z); task_processes does not "
          "count them.");
inline constexpr MetricDecl kProcessor = {
    "task_processor",
    "1",
    MetricType::kGauge,
    2,
    Reduction::kMax,
    "Number of the processor that the task's main thread was on "
    "last: whether tasks are bound, and share one."};

inline constexpr const MetricDecl* kGauges[] = {&kResident, &kPeak,     &kThreads, &kProcesses,
                                                &kVirtual,  &kRunning,  &kBlocked, &kStopped,
                                                &kZombies,  &kProcessor};

// Columns of a task, in this order.
inline constexpr size_t kUserColumn = 0;
inline constexpr size_t kSystemColumn = 1;
inline constexpr size_t kCountersColumn = 2;
inline constexpr size_t kResidentColumn = kCountersColumn + std::size(kCounters);
inline constexpr size_t kPeakColumn = kResidentColumn + 1;
inline constexpr size_t kThreadsColumn = kResidentColumn + 2;
inline constexpr size_t kProcessesColumn = kResidentColumn + 3;
inline constexpr size_t kVirtualColumn = kResidentColumn + 4;
inline constexpr size_t kRunningColumn = kResidentColumn + 5;
inline constexpr size_t kBlockedColumn = kResidentColumn + 6;
inline constexpr size_t kStoppedColumn = kResidentColumn + 7;
inline constexpr size_t kZombiesColumn = kResidentColumn + 8;
inline constexpr size_t kProcessorColumn = kResidentColumn + 9;
inline constexpr size_t kColumns = kResidentColumn + std::size(kGauges);

}  // namespace sonde::collect::task_metrics
