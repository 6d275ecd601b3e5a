#include "tests/surfaces/plan.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

namespace sonde::surfaces {
namespace {

constexpr Nanos kHour = 3600 * kSecond;
constexpr Nanos kAround = 1'790'000'000 * kSecond / kHour * kHour;  // a full hour

SeriesPlan Make(std::string name, MetricType type, Reduction reduction, bool of_tasks = false,
                Tags tags = {}, bool spread = false) {
  SeriesPlan plan;
  plan.series.metric.name = std::move(name);
  plan.series.metric.type = type;
  plan.series.metric.reduction = reduction;
  plan.series.metric.unit = "1";
  plan.series.metric.help = "of the campaign";
  plan.series.metric.spread = spread;
  plan.series.tags = std::move(tags);
  plan.of_tasks = of_tasks;
  return plan;
}

SeriesPlan Slow(SeriesPlan plan) {
  plan.slow = true;
  return plan;
}

// Names that the report reads are those of the product's own metrics.
std::vector<SeriesPlan> AllSeries() {
  constexpr auto kCounter = MetricType::kCounter;
  constexpr auto kGauge = MetricType::kGauge;
  std::vector<SeriesPlan> all = {
      Make("task_cpu_seconds_total", kCounter, Reduction::kSum, true, {{"mode", "system"}}, true),
      Make("task_cpu_seconds_total", kCounter, Reduction::kSum, true, {{"mode", "user"}}, true),
      Make("task_resident_memory_bytes", kGauge, Reduction::kSum, true, {}, true),
      Make("node_network_receive_bytes_total", kCounter, Reduction::kSum, false,
           {{"device", "eth0"}}),
      Make("node_network_receive_bytes_total", kCounter, Reduction::kSum, false,
           {{"device", "ib0"}}),
      Make("node_load1", kGauge, Reduction::kMean),
      Make("node_memory_MemTotal_bytes", kGauge, Reduction::kSum),
      Slow(Make("node_vmstat_pgfault_total", kCounter, Reduction::kSum)),
      Slow(Make("node_sockstat_sockets_used", kGauge, Reduction::kMax)),
      Make("solver.left", kGauge, Reduction::kMin, true, {}, true),
      Make("solver_steps_total", kCounter, Reduction::kSum, true),
      Make("huge_total", kCounter, Reduction::kSum),
      Make("huge_now", kGauge, Reduction::kMax, false, {}, true)};
  all[all.size() - 1].large = all[all.size() - 2].large = true;
  return all;
}

class Planner {
 public:
  explicit Planner(uint64_t seed) : chance_(seed) { plan_.seed = seed; }

  StepPlan Make() {
    MakeTicks();
    DrawTrouble();
    MakeSeries();
    MakeDaemons();
    Order();
    for (Daemon& daemon : plan_.daemons) Measure(daemon);
    MakeClock();
    const size_t questions = chance_.From(0, 2);
    for (size_t i = 0; i < questions; ++i) {
      plan_.asked_after.push_back(chance_.Below(plan_.ticks.size()));
    }
    std::sort(plan_.asked_after.begin(), plan_.asked_after.end());
    return std::move(plan_);
  }

 private:
  // Where a daemon begins and ends among the ticks, by index: the first and the last that it takes.
  struct Span {
    size_t first = 0;
    size_t last = 0;
  };

  void MakeTicks() {
    const std::vector<Nanos> periods = {10 * kMillisecond,
                                        100 * kMillisecond,
                                        250 * kMillisecond,
                                        500 * kMillisecond,
                                        kSecond,
                                        kSecond,
                                        kSecond,
                                        2 * kSecond,
                                        10 * kSecond,
                                        60 * kSecond};
    plan_.period = chance_.Any(periods);
    many_ = chance_.Of(20);
    const size_t ticks = chance_.From(3, many_ ? 16 : chance_.Of(4) ? 60 : 24);
    // A full hour lies within some steps.
    const auto before = static_cast<Nanos>(chance_.Below(ticks + 10)) * plan_.period;
    const Nanos first = (kAround - before) / plan_.period * plan_.period + 2 * plan_.period;
    for (size_t i = 0; i < ticks; ++i) {
      plan_.ticks.push_back(first + static_cast<Nanos>(i) * plan_.period);
    }
    plan_.start = first - plan_.period + plan_.period / 4 / kMillisecond * kMillisecond;
  }

  // A time within a period, in whole milliseconds, after the samples of its tick; for those that
  // hand on what others send the first one or the last one.
  enum class Beside { kFirst, kAny, kLast };
  Nanos BesideTicks(Beside where = Beside::kAny) {
    const auto most = static_cast<size_t>(plan_.period / kMillisecond);
    const size_t at = where == Beside::kFirst  ? most / 2
                      : where == Beside::kLast ? most - 2
                                               : chance_.From(most / 2 + 1, most - 3);
    return static_cast<Nanos>(at) * kMillisecond;
  }

  void MakeSeries() {
    for (SeriesPlan& one : AllSeries()) {
      if (chance_.Of(3)) continue;
      plan_.series.push_back(std::move(one));
    }
    if (plan_.series.empty()) plan_.series.push_back(AllSeries()[5]);
  }

  size_t HowManyHosts() {
    if (many_) return chance_.From(65, 100);
    const size_t dice = chance_.Below(10);
    return dice < 6 ? chance_.From(1, 4) : dice < 9 ? chance_.From(5, 12) : chance_.From(13, 40);
  }

  void DrawTrouble() {
    plan_.fails = chance_.Of(4);
    troubled_ = !chance_.Of(3);
    comes_and_goes_ = troubled_ && chance_.Of(2);
    // Messages of short periods hold several ticks (Relay::kBatch): then nothing is late in them.
    misses_ = troubled_ && plan_.period >= 500 * kMillisecond && !chance_.Of(3);
  }
  void MakeDaemons() {
    const size_t hosts = HowManyHosts();
    plan_.tree = hosts >= 3 && chance_.Of(3);
    fanout_ = static_cast<uint32_t>(chance_.From(2, 4));
    uint32_t rank = 0;
    for (size_t i = 0; i < hosts; ++i) {
      const std::string host = "n" + std::to_string(i + 1);
      plan_.hosts.push_back(host);
      // Where nodes come and go, the step has all of its series from its first row on.
      const bool all_series = many_ || plan_.tree || troubled_;
      const auto tasks = static_cast<uint32_t>(chance_.From(all_series ? 1 : 0, many_ ? 2 : 4));
      AddDaemons(host, static_cast<uint32_t>(i), rank, tasks);
      rank += tasks;
    }
  }

  void AddDaemons(const std::string& host, uint32_t index, uint32_t rank, uint32_t tasks) {
    const size_t last = plan_.ticks.size() - 1;
    Daemon daemon;
    daemon.host = host;
    daemon.first_rank = rank;
    daemon.tasks = tasks;
    Span span{0, last};
    // Those that hand on what others send stay as long as these.
    const bool leaf = !plan_.tree || index >= fanout_;
    const bool whole = !comes_and_goes_ || (plan_.tree && !leaf);
    if (!whole && chance_.Of(5)) span.first = chance_.Below(last + 1);
    if (!whole && chance_.Of(4)) span.last = chance_.From(span.first, last);
    if (span.first != 0 || span.last != last) plan_.changes = true;
    if (plan_.tree && index >= fanout_) daemon.parent = index % fanout_;
    if (whole || plan_.tree || !chance_.Of(6) || span.last == last) return Add(daemon, span);
    daemon.lost = true;
    plan_.changes = true;
    Add(daemon, span);
    // The head waits 3 s for it.
    const auto away = static_cast<size_t>(4 * kSecond / plan_.period) + 2;
    if (span.last + away >= last || chance_.Of(2)) return;
    Daemon anew = daemon;
    anew.lost = false;
    anew.replaces = plan_.daemons.size() - 1;
    Add(anew, {span.last + away, last});
  }

  void Add(Daemon daemon, const Span& span) {
    const bool is_parent = plan_.tree && daemon.parent == kNobody;
    daemon.samples.push_back({plan_.ticks[span.first] - plan_.period +
                                  BesideTicks(is_parent ? Beside::kFirst : Beside::kAny),
                              false,
                              {}});
    for (size_t i = span.first; i <= span.last; ++i) {
      const bool edge = i == span.first || i == span.last;
      const bool may_miss = misses_ && !edge && daemon.replaces == SIZE_MAX;
      if (may_miss && !is_parent && chance_.Of(12)) {
        plan_.changes = true;
        continue;
      }
      daemon.samples.push_back({plan_.ticks[i], true, {}});
    }
    if (!daemon.lost) {
      const Nanos beside = BesideTicks(is_parent ? Beside::kLast : Beside::kAny);
      daemon.samples.push_back({plan_.ticks[span.last] + beside, false, {}});
    }
    const bool may_be_stuck = misses_ && !plan_.tree && !daemon.lost;
    if (may_be_stuck && span.last > span.first + 1 && chance_.Of(5)) {
      daemon.stuck_from = chance_.From(span.first + 1, span.last);
      daemon.stuck_for = chance_.From(1, 5);
      plan_.changes = true;
    }
    plan_.daemons.push_back(std::move(daemon));
  }

  // By the time at which they join: that gives them their indexes.
  void Order() {
    std::vector<size_t> order;
    for (size_t i = 0; i < plan_.daemons.size(); ++i) order.push_back(i);
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return plan_.daemons[a].joined() < plan_.daemons[b].joined();
    });
    std::vector<size_t> place(order.size());
    for (size_t i = 0; i < order.size(); ++i) place[order[i]] = i;
    std::vector<Daemon> sorted;
    for (const size_t at : order) sorted.push_back(std::move(plan_.daemons[at]));
    for (Daemon& daemon : sorted) {
      if (daemon.parent != kNobody) daemon.parent = static_cast<uint32_t>(place[daemon.parent]);
      if (daemon.replaces != SIZE_MAX) daemon.replaces = place[daemon.replaces];
    }
    plan_.daemons = std::move(sorted);
  }

  void Measure(Daemon& daemon) {
    for (size_t s = 0; s < plan_.series.size(); ++s) {
      if (!plan_.series[s].of_tasks) daemon.columns.push_back({s, kNobody});
      for (uint32_t task = 0; plan_.series[s].of_tasks && task < daemon.tasks; ++task) {
        daemon.columns.push_back({s, daemon.first_rank + task});
      }
    }
    for (const Column& column : daemon.columns) MeasureColumn(daemon, plan_.series[column.series]);
  }

  void MeasureColumn(Daemon& daemon, const SeriesPlan& series) {
    const bool counts = series.series.metric.type == MetricType::kCounter;
    const size_t speed = chance_.Of(4) ? 0 : chance_.From(1, 4000);
    // A counter that begins anew begins with less than it had.
    const bool from_zero = counts && !(series.large && daemon.replaces == SIZE_MAX);
    double value = from_zero ? 0 : Any(series);
    for (size_t i = 0; i < daemon.samples.size(); ++i) {
      Sample& sample = daemon.samples[i];
      if (counts && i > 0) value += Rise(series, speed);
      if (!counts) value = chance_.Of(3) ? Any(series) : value;
      const bool due = !sample.tick || !series.slow || IsSlowTick(sample.time, plan_.period);
      const bool fails = plan_.fails && !counts && !series.slow && sample.tick && chance_.Of(20);
      sample.values.push_back(due && !fails ? value : std::nan(""));
    }
  }

  double Rise(const SeriesPlan& series, size_t speed) {
    const auto rise = static_cast<double>(chance_.Below(speed + 1));
    return series.large ? rise * 1024 : rise / 8;
  }

  double Any(const SeriesPlan& series) {
    if (series.large) return std::ldexp(1, 62) + static_cast<double>(chance_.Below(1 << 20)) * 1024;
    return (static_cast<double>(chance_.Below(16'001)) - (chance_.Of(3) ? 8000 : 0)) / 8;
  }

  void MakeClock() {
    if (!chance_.Of(6)) return;
    plan_.clock_at = chance_.Below(plan_.ticks.size());
    const auto by = static_cast<Nanos>(chance_.From(11, 7200)) * kSecond;
    plan_.clock_by = chance_.Of(2) ? by : -by;
  }

  Chance chance_;
  StepPlan plan_;
  bool many_ = false;  // more than 64 nodes
  bool troubled_ = false;
  bool comes_and_goes_ = false;  // nodes may come late, end early, be lost
  bool misses_ = false;          // they may miss ticks, and be late
  uint32_t fanout_ = 2;
};

}  // namespace

StepPlan MakePlan(uint64_t seed) { return Planner(seed).Make(); }

}  // namespace sonde::surfaces
