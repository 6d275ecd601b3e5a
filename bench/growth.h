// What benchmarks share that show what nodes cost in steps of different sizes.
#pragma once

#include <fmt/core.h>

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "series/block/schema.h"
#include "series/store/reduced.h"

namespace sonde::growth {

inline constexpr size_t kMetrics = 300;

// Of this thread.
inline double CpuMicroseconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) / 1e3;
}

// Prints the CPU time that `work` takes of this thread, by `divisor`, as a figure of its own.
template <typename Work>
void Measure(std::string_view phase, std::string_view kind, uint32_t nodes, double divisor,
             Work work) {
  const double begin = CpuMicroseconds();
  work();
  fmt::print("figure {}{}_{} {:.3f} us\n", phase, kind, nodes,
             (CpuMicroseconds() - begin) / divisor);
  std::fflush(stdout);
}

// The mean CPU time of this thread in many short rounds, for steps of each size in turn: a
// processor that changes its speed, or that others use as well, does so for all sizes. What comes
// once in many ticks counts as well. `work` gives how often it has done what is measured; `prepare`
// is no part of it.
template <typename Step, typename Prepare, typename Work>
void MeasureInTurn(std::string_view phase, std::string_view kind,
                   const std::vector<std::unique_ptr<Step>>& steps, Prepare prepare, Work work) {
  constexpr int kRounds = 25;
  std::vector<double> used(steps.size());
  std::vector<int> done(steps.size());
  for (int round = 0; round < kRounds; ++round) {
    for (size_t i = 0; i < steps.size(); ++i) {
      prepare(*steps[i]);
      const double begin = CpuMicroseconds();
      done[i] += work(*steps[i]);
      used[i] += CpuMicroseconds() - begin;
    }
  }
  for (size_t i = 0; i < steps.size(); ++i) {
    fmt::print("figure {}{}_{} {:.3f} us\n", phase, kind, steps[i]->size(), used[i] / done[i]);
  }
  std::fflush(stdout);
}

inline Schema::Ptr MakeSchema() {
  std::vector<Series> series(kMetrics);
  for (size_t i = 0; i < kMetrics; ++i) {
    series[i].metric.name = fmt::format("bench_metric_{}_total", i);
    series[i].metric.type = i % 3 == 0 ? MetricType::kGauge : MetricType::kCounter;
  }
  return Schema::Make(std::move(series));
}

// What nodes have at the tick of that number, reduced; `first`: the first of them.
inline void Fill(std::vector<Reduced>& values, int64_t tick, uint32_t first) {
  values.assign(kMetrics, Reduced());
  for (size_t i = 0; i < kMetrics; ++i) {
    values[i].Add(static_cast<double>(i * 100) + static_cast<double>(tick % 1000),
                  {first, Owner::kNobody});
  }
}

// The sizes that were asked for, or `usual`. Ends the program where one is not a number, or less
// than `least`.
inline std::vector<uint32_t> Sizes(int argc, char** argv, uint32_t least,
                                   std::vector<uint32_t> usual) {
  std::vector<uint32_t> sizes;
  for (int i = 1; i < argc; ++i) {
    const std::string_view text = argv[i];
    uint32_t nodes = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), nodes);
    if (error != std::errc() || end != text.data() + text.size() || nodes < least) {
      fmt::print(stderr, "usage: {} [NODES...]    at least {} each\n", argv[0], least);
      std::exit(2);
    }
    sizes.push_back(nodes);
  }
  return sizes.empty() ? usual : sizes;
}

}  // namespace sonde::growth
