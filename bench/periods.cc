// How often the period of a series is found, and how long that takes: series of 600 values at 1 Hz
// with bursts or waves of 8 to 60 s and white noise of the same variance (a signal-to-noise ratio
// of 1), and series of noise alone.
//
//   bench_periods [CASES]     Sonde's figures
//   bench_periods --data      the cases, a line of JSON each
//   bench_periods --judge F   figures of another's answers: lines "CASE PERIOD", 0: none
#include "insight/periods.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <map>
#include <numbers>
#include <random>
#include <string>
#include <vector>

namespace {

constexpr size_t kPoints = 600;
constexpr int kCases = 600;  // a third each: bursts, waves, noise

struct Case {
  double period = 0;  // seconds; 0: noise
  std::vector<double> values;
};

std::vector<Case> MakeCases(int count) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> share(0, 1);
  std::vector<Case> cases;
  for (int i = 0; i < count; ++i) {
    Case one;
    one.period = i % 3 == 2 ? 0 : 8 + 52 * share(random);
    const double begin = share(random), busy = 0.3 + 0.4 * share(random);
    std::vector<double> signal(kPoints);
    double sum = 0, squares = 0;
    for (size_t t = 0; t < kPoints; ++t) {
      const double cycle = one.period > 0 ? static_cast<double>(t) / one.period + begin : 0;
      const double phase = cycle - std::floor(cycle);
      if (i % 3 == 0) signal[t] = phase < busy ? 1 : 0;
      if (i % 3 == 1) signal[t] = std::sin(2 * std::numbers::pi * phase);
      sum += signal[t];
      squares += signal[t] * signal[t];
    }
    const double n = kPoints;
    const double variance = squares / n - (sum / n) * (sum / n);
    for (const double value : signal) {
      one.values.push_back((variance > 0 ? value / std::sqrt(variance) : 0) + normal(random));
    }
    cases.push_back(std::move(one));
  }
  return cases;
}

// Periods by case; 0: none.
void Judge(const std::vector<Case>& cases, const std::map<size_t, double>& found,
           const std::string& who) {
  for (const int kind : {0, 1}) {
    int right = 0, all = 0;
    for (size_t i = 0; i < cases.size(); ++i) {
      if (static_cast<int>(i % 3) != kind) continue;
      ++all;
      const auto at = found.find(i);
      const double period = at == found.end() ? 0 : at->second;
      right += std::abs(period / cases[i].period - 1) <= 0.02;
    }
    fmt::print("figure periods.{}.{}_within_2_percent {:.1f} %\n", who,
               kind == 0 ? "bursts" : "waves", 100.0 * right / all);
  }
  int named = 0, noise = 0;
  for (size_t i = 2; i < cases.size(); i += 3, ++noise) {
    const auto at = found.find(i);
    named += at != found.end() && at->second > 0;
  }
  fmt::print("figure periods.{}.noise_with_a_period {:.1f} %\n", who, 100.0 * named / noise);
}

double CpuSeconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  const bool number = !mode.empty() && mode[0] != '-';
  const std::vector<Case> cases = MakeCases(number ? std::atoi(argv[1]) : kCases);
  if (mode == "--data") {
    for (const Case& one : cases) fmt::print("[{:.9g}]\n", fmt::join(one.values, ","));
    return 0;
  }
  std::map<size_t, double> found;
  if (mode == "--judge" && argc > 2) {
    std::ifstream file(argv[2]);
    size_t at = 0;
    double period = 0;
    while (file >> at >> period) found[at] = period;
    Judge(cases, found, "ftio");
    return 0;
  }
  const double begin = CpuSeconds();
  for (size_t i = 0; i < cases.size(); ++i) {
    const auto periods = sonde::insight::FindPeriod(cases[i].values, 1);
    if (periods.ok() && periods->dominant) found[i] = periods->period.value_or(0);
  }
  const double time = CpuSeconds() - begin;
  Judge(cases, found, "sonde");
  fmt::print("figure periods.sonde.of_600_values {:.1f} us\n",
             1e6 * time / static_cast<double>(cases.size()));
  return 0;
}
