// What it takes to find phases and stragglers, and how often that is right, on data that is made
// with known answers: a day of 6 series at 1 Hz, 1,000 ranks over 10 minutes and over an hour.
// usage: bench_insight [TRIES]
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <random>
#include <vector>

#include "insight/change_points.h"
#include "insight/stragglers.h"

namespace {

using namespace sonde::insight;

double CpuMilliseconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) * 1e-6;
}

std::mt19937_64 random_numbers(1);

double Normal() {
  static std::normal_distribution<double> normal;
  return normal(random_numbers);
}

std::vector<double> Remembering(size_t length, double memory) {
  std::vector<double> out(length);
  double value = Normal();
  for (double& one : out) {
    value = memory * value + std::sqrt(1 - memory * memory) * Normal();
    one = value;
  }
  return out;
}

template <typename F>
double MedianTime(int tries, const F& f) {
  std::vector<double> times;
  for (int i = 0; i < tries; ++i) {
    const double before = CpuMilliseconds();
    f();
    times.push_back(CpuMilliseconds() - before);
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

void Day() {
  std::vector<std::vector<double>> series;
  for (int k = 0; k < 6; ++k) {
    series.push_back(Remembering(86'400, 0.5));
    for (size_t t = 30'000; t < 50'000; ++t) series.back()[t] += 5;
  }
  const double one = MedianTime(9, [&] { (void)FindChanges(std::span(&series[0], 1)); });
  const double six = MedianTime(9, [&] { (void)FindChanges(series); });
  fmt::print("figure insight.phases_of_a_day_one_series {:.1f} ms\n", one);
  fmt::print("figure insight.phases_of_a_day_6_series {:.1f} ms\n", six);
}

std::vector<Row> Ranks(size_t ranks, size_t ticks) {
  std::vector<Row> rows;
  for (size_t r = 0; r < ranks; ++r) {
    Row row = Remembering(ticks, 0.5);
    const double own = 100 + Normal();
    for (double& value : row) value = own + 5 * value;
    rows.push_back(std::move(row));
  }
  return rows;
}

void Thousand() {
  for (const size_t ticks : {600, 3600}) {
    std::vector<Row> rows = Ranks(1000, ticks);
    for (size_t t = ticks / 2; t < ticks; ++t) rows[77][t] += 20;
    const double time = MedianTime(5, [&] { (void)FindStragglers(rows); });
    fmt::print("figure insight.stragglers_of_1000_ranks_{}_ticks {:.1f} ms\n", ticks, time);
  }
}

void StragglerRates(int tries) {
  int named = 0, others = 0, false_alarms = 0;
  for (int i = 0; i < tries; ++i) {
    std::vector<Row> rows = Ranks(32, 300);
    false_alarms += !FindStragglers(rows)->stragglers.empty();
    const size_t row = random_numbers() % rows.size();
    for (size_t t = i % 2 == 0 ? 0 : 150; t < 300; ++t) rows[row][t] += 25;
    const StragglerFindings found = *FindStragglers(rows);
    for (const Straggler& one : found.stragglers) {
      (one.row == row ? named : others) += 1;
    }
  }
  fmt::print("figure insight.stragglers_named {:.2f} %\n", 100.0 * named / tries);
  fmt::print("figure insight.others_named {:.2f} %\n", 100.0 * others / tries);
  fmt::print("figure insight.false_alarms {:.2f} %\n", 100.0 * false_alarms / tries);
}

void PhaseRates(int tries) {
  for (const double memory : {0.0, 0.8}) {
    const double step = memory > 0 ? 5 : 3;
    int found = 0, extra = 0, made = 0, noise = 0;
    for (int i = 0; i < tries; ++i) {
      std::vector<double> series = Remembering(600, memory);
      noise += !FindChanges(std::span(&series, 1))->empty();
      std::vector<size_t> places;
      for (size_t k = 1; k <= 3; ++k) places.push_back(150 * k - 30 + random_numbers() % 60);
      double level = 0;
      for (size_t t = 0, next = 0; t < series.size(); ++t) {
        if (next < places.size() && t == places[next]) {
          level += random_numbers() % 2 == 0 ? step : -step;
          ++next;
        }
        series[t] += level;
      }
      const auto changes = *FindChanges(std::span(&series, 1));
      int hits = 0;
      for (const size_t at : places) {
        hits += std::any_of(changes.begin(), changes.end(),
                            [&](size_t one) { return one + 2 >= at && at + 2 >= one; });
      }
      made += 3;
      found += hits;
      extra += static_cast<int>(changes.size()) - hits;
    }
    const char* kind = memory > 0 ? "of_5_in_memory_0.8" : "of_3_in_white_noise";
    fmt::print("figure insight.changes_{}_found {:.2f} %\n", kind, 100.0 * found / made);
    fmt::print("figure insight.changes_{}_extra {:.2f} %\n", kind, 100.0 * extra / made);
    fmt::print("figure insight.noise_with_changes_{} {:.2f} %\n", kind, 100.0 * noise / tries);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int tries = argc > 1 ? std::atoi(argv[1]) : 1000;
  Day();
  Thousand();
  StragglerRates(tries);
  PhaseRates(tries);
  return 0;
}
