#include "daemon/collect/counters/vocabulary.h"

#include <fmt/core.h>

#include <algorithm>

namespace sonde::collect {
namespace {

constexpr MetricDecl Count(std::string_view name, std::string_view help,
                           std::string_view unit = "1") {
  return {name, unit, MetricType::kCounter, 3, Reduction::kSum, help};
}
constexpr MetricDecl Gauge(std::string_view name, std::string_view unit, Reduction reduction,
                           std::string_view help) {
  return {name, unit, MetricType::kGauge, 3, reduction, help};
}

constexpr EventWord kEvents[] = {
    {"task_clock", Count("task_perf_task_clock_seconds_total",
                         "Processor time of the task by the scheduler's clock.", "seconds")},
    {"page_faults", Count("task_perf_page_faults_total", "Page faults.")},
    {"context_switches", Count("task_perf_context_switches_total", "Context switches.")},
    {"cpu_migrations",
     Count("task_perf_cpu_migrations_total", "Moves from one processor to another.")},
    {"syscalls", Count("task_perf_syscalls_total",
                       "System calls; at level 4, of steps that have their nodes to themselves.")},
    {"cycles", Count("task_perf_cycles_total", "Processor cycles, at the frequency it ran with.")},
    {"instructions", Count("task_perf_instructions_total", "Instructions completed.")},
    {"reference_cycles", Count("task_perf_reference_cycles_total",
                               "Cycles of the clock that does not change with the frequency.")},
    {"branches", Count("task_perf_branches_total", "Branch instructions completed.")},
    {"branch_misses",
     Count("task_perf_branch_misses_total", "Branches whose way was predicted wrongly.")},
    {"cache_references", Count("task_perf_cache_references_total",
                               "Requests to the last cache before memory, or to the one the "
                               "processor can count; see docs/counters.md.")},
    {"cache_misses", Count("task_perf_cache_misses_total", "Those that were not served there.")},
    {"l1d_misses",
     Count("task_perf_l1d_misses_total", "Lines that were not in the first data cache.")},
    {"l2_misses", Count("task_perf_l2_misses_total", "Requests not served by the second cache.")},
    {"dtlb_misses", Count("task_perf_dtlb_misses_total",
                          "Data addresses that had to be looked up in the page tables.")},
    {"stalled_cycles_frontend",
     Count("task_perf_stalled_cycles_frontend_total",
           "Cycles, or places for operations in them, that lacked instructions to issue.")},
    {"stalled_cycles_backend", Count("task_perf_stalled_cycles_backend_total",
                                     "Cycles, or places for operations in them, in which nothing "
                                     "could be issued for want of data or units.")},
    {"memory_stall_cycles",
     Count("task_perf_memory_stall_cycles_total", "Cycles that waited for memory or caches.")},
    {"double_scalar_instructions",
     Count("task_perf_double_scalar_instructions_total",
           "Scalar double precision instructions; a fused multiply and add counts twice.")},
    {"double_128_instructions",
     Count("task_perf_double_128_instructions_total",
           "Double precision instructions on 128 bits: 2 operations each.")},
    {"double_256_instructions",
     Count("task_perf_double_256_instructions_total",
           "Double precision instructions on 256 bits: 4 operations each.")},
    {"double_512_instructions",
     Count("task_perf_double_512_instructions_total",
           "Double precision instructions on 512 bits: 8 operations each.")},
    {"single_scalar_instructions",
     Count("task_perf_single_scalar_instructions_total",
           "Scalar single precision instructions; a fused multiply and add counts twice.")},
    {"single_128_instructions",
     Count("task_perf_single_128_instructions_total",
           "Single precision instructions on 128 bits: 4 operations each.")},
    {"single_256_instructions",
     Count("task_perf_single_256_instructions_total",
           "Single precision instructions on 256 bits: 8 operations each.")},
    {"single_512_instructions",
     Count("task_perf_single_512_instructions_total",
           "Single precision instructions on 512 bits: 16 operations each.")},
    {"flops", Count("task_perf_flops_total",
                    "Floating point operations, where the processor counts these itself.")},
    {"fixed_flops", Count("task_perf_fixed_flops_total",
                          "Floating point operations of scalar and Neon instructions.")},
    {"scalable_flops", Count("task_perf_scalable_flops_total",
                             "Floating point operations of SVE instructions, for each 128 bits of "
                             "vector length.")},
    {"fp_scalar_instructions",
     Count("task_perf_fp_scalar_instructions_total",
           "Scalar floating point instructions of both precisions; a fused multiply and add counts "
           "twice.")},
    {"fp_4_flop_instructions",
     Count("task_perf_fp_4_flop_instructions_total",
           "Vector instructions with 4 floating point operations each; a fused multiply and add "
           "counts twice.")},
    {"fp_8_flop_instructions",
     Count("task_perf_fp_8_flop_instructions_total",
           "Vector instructions with 8 floating point operations each; a fused multiply and add "
           "counts twice.")},
    {"simd_instructions", Count("task_perf_simd_instructions_total",
                                "Vector instructions, whatever they calculate, begun.")},
    {"fp_instructions",
     Count("task_perf_fp_instructions_total", "Scalar floating point instructions begun.")},
    {"memory_reads",
     Count("task_perf_memory_reads_total", "Lines of 64 bytes fetched from memory for the task.")},
    {"memory_l1_prefetches",
     Count("task_perf_memory_l1_prefetches_total",
           "Lines from memory that the first cache's prefetchers asked for; not in reads.")},
    {"memory_l2_prefetches",
     Count("task_perf_memory_l2_prefetches_total",
           "Lines from memory that the second cache's prefetchers asked for; not in reads.")},
    {"memory_l3_prefetches",
     Count("task_perf_memory_l3_prefetches_total",
           "Lines from memory that the third cache's prefetchers asked for; not in reads.")},
    {"memory_writes", Count("task_perf_memory_writes_total",
                            "Lines of 64 bytes the task had written back to memory.")},
};

constexpr MetricDecl kAny = Count("task_perf_EVENT_total",
                                  "Any other event of --telemetry-events: EVENT is its name in "
                                  "small letters, all but letters and digits as '_'.");

constexpr MetricDecl kDerived[] = {
    WithSpread(
        Gauge("task_instructions_per_cycle", "1", Reduction::kMean, "Instructions per cycle.")),
    Gauge("task_frequency_hertz", "hertz", Reduction::kMean,
          "Cycles per second of processor time: the frequency while the task ran."),
    Gauge("task_branch_miss_ratio", "ratio", Reduction::kMean,
          "Share of the branches that were predicted wrongly."),
    Gauge("task_cache_miss_ratio", "ratio", Reduction::kMean,
          "Share of the requests to the last cache that it did not serve."),
    Gauge("task_frontend_stall_ratio", "ratio", Reduction::kMean,
          "Share of the cycles, or places for operations in them, that lacked instructions."),
    Gauge("task_backend_stall_ratio", "ratio", Reduction::kMean,
          "Share of the cycles, or places for operations in them, that waited for data or units."),
    Gauge("task_memory_stall_ratio", "ratio", Reduction::kMean,
          "Share of the cycles that waited for memory or caches."),
    WithSpread(Gauge("task_flops_per_second", "flops_per_second", Reduction::kSum,
                     "Floating point operations per second, both precisions together.")),
    Gauge("task_vector_flops_ratio", "ratio", Reduction::kMean,
          "Share of the floating point operations that vector instructions did."),
    WithSpread(Gauge("task_memory_bytes_per_second", "bytes_per_second", Reduction::kSum,
                     "Bytes moved between memory and caches for the task, as far as the processor "
                     "tells; see docs/counters.md.")),
    Gauge("task_arithmetic_intensity", "1", Reduction::kMean,
          "Floating point operations per byte moved from or to memory."),
};

std::string MetricName(std::string_view event, bool clock) {
  std::string name = "task_perf_";
  for (const char c : event) {
    const bool upper = c >= 'A' && c <= 'Z';
    const bool plain = upper || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    name += upper ? static_cast<char>(c - 'A' + 'a') : plain ? c : '_';
  }
  return name + (clock ? "_seconds_total" : "_total");
}

}  // namespace

const MetricDecl kRunningRatio =
    Gauge("task_counters_running_ratio", "ratio", Reduction::kMin,
          "Share of the time, since the sample before, that the events of a group (tag group) were "
          "on the processor's counters; below 1 these were shared, and what stands for the rest of "
          "the time is an estimate.");
const MetricDecl kReleased =
    Gauge("task_counters_released", "1", Reduction::kMax,
          "1 while the processor's counters are left to a profiler, or paused by `sonde pause "
          "counters`: the task's hardware events are missing then; else 0.");

std::span<const EventWord> EventWords() { return kEvents; }
std::span<const MetricDecl> DerivedMetrics() { return kDerived; }

Metric EventMetric(std::string_view name, bool clock) {
  std::string full = MetricName(name, clock);
  for (const EventWord& word : kEvents) {
    if (word.decl.name == full) return Metric(word.decl);
  }
  Metric metric(kAny);
  metric.name = std::move(full);
  metric.unit = clock ? "seconds" : "1";
  metric.help = fmt::format("Event {} of libpfm4.", name);
  return metric;
}

const MetricDecl* FindDerived(std::string_view metric) {
  const auto* const found =
      std::find_if(std::begin(kDerived), std::end(kDerived),
                   [metric](const MetricDecl& decl) { return decl.name == metric; });
  return found == std::end(kDerived) ? nullptr : found;
}

std::vector<MetricDecl> CounterMetrics() {
  std::vector<MetricDecl> metrics;
  for (const EventWord& word : kEvents) metrics.push_back(word.decl);
  metrics.push_back(kAny);
  metrics.insert(metrics.end(), std::begin(kDerived), std::end(kDerived));
  metrics.push_back(kRunningRatio);
  metrics.push_back(kReleased);
  return metrics;
}

}  // namespace sonde::collect
