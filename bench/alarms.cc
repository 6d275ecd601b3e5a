// What alarm rules cost the head's loop at each tick: 1,000 rules of all kinds over a row of 600
// reduced series, by thread CPU time. Also what it costs when every rule turns at every tick, and a
// node's derived series. usage: bench_alarms [TICKS]
#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include "series/alarm/derived_series.h"
#include "series/alarm/evaluator.h"

namespace {

using namespace sonde;

constexpr size_t kSeries = 600;
constexpr size_t kRules = 1000;
constexpr uint32_t kTasks = 128;

double CpuMicroseconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) * 1e-3;
}

std::vector<Series> MakeSeries() {
  std::vector<Series> all(kSeries);
  for (size_t i = 0; i < kSeries; ++i) {
    Metric& metric = all[i].metric;
    metric.name = fmt::format("{}m{}", i % 10 == 9 ? "alarm:rate:" : "", i);
    metric.type = i % 2 == 0 ? MetricType::kCounter : MetricType::kGauge;
    if (i % 3 == 0) all[i].tags.Set("device", "d0");
  }
  return all;
}

// None of these is ever raised, all of them are looked at.
std::string RuleText(size_t i) {
  const size_t of = i % kSeries;
  switch (i % 8) {
    case 0:
      return fmt::format("m{} rate > 1e12 for 30s", of / 2 * 2);
    case 1:
      return fmt::format("m{} any > 1e12 for 5s clear 1e11", of);
    case 2:
      return fmt::format("m{} all < -1 and m{} max > 3", of, (of + 6) % kSeries);
    case 3:
      return fmt::format("m{} lags 1e6", of);
    case 4:
      return fmt::format("m{} any < -5 in 60s", of);
    case 5:
      return fmt::format("m{} / m{} > 1e12", of, (of + 5) % kSeries);
    case 6:
      return fmt::format("m{} absent for 10s", of);
    default:
      return fmt::format("m{} any rate < -1 for 10s", of / 10 * 10 + 9);
  }
}

void Add(alarms::Evaluator& evaluator, const std::string& name, const std::string& text) {
  Result<alarms::Rule> rule = alarms::ParseRule(name, text);
  Status status = rule.ok() ? evaluator.Add(*std::move(rule)) : rule.status();
  if (status.ok()) return;
  std::fprintf(stderr, "bench_alarms: %.*s\n", static_cast<int>(status.message().size()),
               status.message().data());
  std::exit(1);
}

void FillRow(size_t tick, std::vector<Reduced>& row) {
  for (size_t i = 0; i < row.size(); ++i) {
    row[i] = Reduced();
    for (uint32_t node = 0; node < 4; ++node) {
      row[i].Add(static_cast<double>(tick * 10 + i + node * tick % 7), {node, 0});
    }
  }
}

void Figure(const char* name, std::vector<double> times) {
  std::sort(times.begin(), times.end());
  fmt::print("figure alarms.{}_median {:.1f} us\n", name, times[times.size() / 2]);
  fmt::print("figure alarms.{}_p99 {:.1f} us\n", name, times[times.size() * 99 / 100]);
}

void Run(const char* name, alarms::Evaluator& evaluator, size_t ticks, bool turns) {
  const std::vector<Series> series = MakeSeries();
  std::vector<Reduced> row(kSeries);
  std::vector<alarms::Event> events;
  std::vector<double> times;
  for (size_t tick = 1; tick <= ticks; ++tick) {
    FillRow(turns && tick % 2 == 0 ? 0 : tick, row);
    events.clear();
    const double before = CpuMicroseconds();
    evaluator.Evaluate(series, {static_cast<Nanos>(tick) * kSecond, &row, true}, events);
    if (tick > 10) times.push_back(CpuMicroseconds() - before);
  }
  Figure(name, times);
}

// A rule comes while the step runs, over as many series of two metrics as it may have: the next
// tick waits for it.
void RunAdd(size_t times_added) {
  constexpr int kSeriesOfRule = 256;
  std::vector<Series> series;
  for (const char* metric : {"written", "capacity"}) {
    for (int i = 0; i < kSeriesOfRule; ++i) {
      Series& one = series.emplace_back();
      one.metric.name = metric;
      one.tags.Set("device", fmt::format("d{}", i));
    }
  }
  const std::vector<Reduced> row(series.size());
  alarms::Evaluator evaluator(kSecond);
  std::vector<alarms::Event> events;
  evaluator.Evaluate(series, {kSecond, &row, true}, events);
  std::vector<double> times;
  for (size_t i = 0; i < times_added; ++i) {
    const double before = CpuMicroseconds();
    Add(evaluator, "full", "written / capacity > 0.9 and written rate > 0 for 10s");
    times.push_back(CpuMicroseconds() - before);
    evaluator.Remove("full");
  }
  Figure("add_rule_of_256_series", times);
}

void RunDerived(size_t ticks) {
  std::vector<Series> series;
  for (const char* metric : {"cpu", "task_processes"}) {
    for (uint32_t task = 0; task < kTasks; ++task) {
      Series& one = series.emplace_back();
      one.metric.name = metric;
      one.metric.type = metric[0] == 'c' ? MetricType::kCounter : MetricType::kGauge;
      one.tags.Set("task", std::to_string(task));
    }
  }
  alarms::DerivedSeries derived;
  derived.SetWanted({{"cpu", {}, "", false, true}, {"cpu", {}, "", true, true}});
  const Schema::Ptr groups[] = {Schema::Make(series)};
  derived.SetSchemas(groups);
  std::vector<double> row(series.size(), 1);
  std::vector<double> times;
  for (size_t tick = 1; tick <= ticks; ++tick) {
    for (double& value : row) value += 0.5;
    const std::span<const double> rows[] = {row};
    const double before = CpuMicroseconds();
    derived.Update(static_cast<Nanos>(tick) * kSecond, rows);
    times.push_back(CpuMicroseconds() - before);
  }
  Figure("derive_rates_of_128_tasks", times);
}

}  // namespace

int main(int argc, char** argv) {
  const size_t ticks = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 2000;
  alarms::Evaluator quiet(kSecond), loud(kSecond);
  for (size_t i = 0; i < kRules; ++i) {
    Add(quiet, fmt::format("r{}", i), RuleText(i));
    Add(loud, fmt::format("r{}", i), fmt::format("m{} any > 700", i % kSeries / 2 * 2));
  }
  Run("1000_rules", quiet, ticks, false);
  Run("1000_rules_all_turn", loud, ticks, true);
  RunAdd(ticks / 10);
  RunDerived(ticks);
  return 0;
}
