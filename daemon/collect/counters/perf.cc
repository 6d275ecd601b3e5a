#include "daemon/collect/counters/perf.h"

#include <fmt/format.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <map>

#include "daemon/collect/counters/probe.h"
#include "daemon/collect/counters/vocabulary.h"

namespace sonde::collect {
namespace {

std::string WhyNoSyscalls(int error) {
  switch (error) {
    case EPERM:
      return "counting them slows down all of a node, so only root may, for a step that has its "
             "node "
             "to itself (plugstack.conf: machine_counters)";
    case ENOENT:
      return "the kernel offers no tracing";
    default:
      return std::strerror(error);
  }
}

// Counters of virtual machines are seen to jump by 2^47 or 2^48. No processor makes as much: 64
// operations a cycle at 6 GHz are 384 a nanosecond. `ran` is the sum over the task's threads.
bool IsImpossible(uint64_t added, double ran) {
  constexpr double kMostPerNanosecond = 1024;
  constexpr double kLeastJump = 1e12;
  const auto more = static_cast<double>(added);
  return more > kLeastJump && more > kMostPerNanosecond * ran;
}

double Seconds(Nanos time) { return static_cast<double>(time) / static_cast<double>(kSecond); }

}  // namespace

PerfSource::PerfSource(const EventChoice& choice, const Clock& clock) : clock_(clock) {
  plan_ = PlanEvents(choice, notes_);
  for (const PlannedEvent& event : plan_.events) requests_.push_back(event.request);
  told_.resize(requests_.size());
  jumped_.resize(requests_.size());
}

void PerfSource::AddTask(uint32_t rank, std::span<const int> descriptors) {
  if (descriptors.size() != requests_.size()) {
    for (const int fd : descriptors) UniqueFd(fd).Reset();
    if (!std::exchange(noted_mismatch_, true)) {
      notes_.push_back(
          fmt::format("task {}: no events are counted: the launcher opened {} for {}; other tasks "
                      "may lack them too",
                      rank, descriptors.size(), requests_.size()));
    }
    return;
  }
  NoteFailures(descriptors);
  Task& task = tasks_.emplace_back();
  task.rank = rank;
  AddCounters(task, descriptors);
  AddDerived(task);
  for (const uint32_t counter : task.ratios) {
    const uint32_t group = plan_.events[task.counters[counter].event].group;
    AddSeries(Metric(kRunningRatio), rank, plan_.groups[group]);
  }
  if (task.hardware) AddSeries(Metric(kReleased), rank);
  task.added_released = released_;
  if (released_) Switch(task, PERF_EVENT_IOC_DISABLE);
  ++generation_;
}

void PerfSource::AddCounters(Task& task, std::span<const int> descriptors) {
  const Nanos now = clock_.Monotonic();
  uint32_t last_group = UINT32_MAX;
  for (uint32_t i = 0; i < descriptors.size(); ++i) {
    if (descriptors[i] < 0) continue;
    const PlannedEvent& event = plan_.events[i];
    const auto index = static_cast<uint32_t>(task.counters.size());
    task.counters.push_back({UniqueFd(descriptors[i]), i, index});
    task.units.emplace_back().covered_until = now;
    AddSeries(event.metric, task.rank);
    if (event.IsSoftware()) continue;
    task.hardware = true;
    if (std::exchange(last_group, event.group) != event.group) task.ratios.push_back(index);
  }
}

// For each metric, the first formula whose events were all opened.
void PerfSource::AddDerived(Task& task) {
  for (uint32_t f = 0; f < plan_.formulas.size(); ++f) {
    const PlannedFormula& formula = plan_.formulas[f];
    const bool known = std::any_of(task.derived.begin(), task.derived.end(), [&](const Derived& d) {
      return plan_.formulas[d.formula].metric.name == formula.metric.name;
    });
    Derived derived{f, {}};
    for (const uint32_t input : formula.inputs) {
      const auto counter = std::find_if(task.counters.begin(), task.counters.end(),
                                        [&](const Counter& c) { return c.event == input; });
      if (input == PlannedFormula::kSeconds) {
        derived.inputs.push_back(input);
      } else if (counter != task.counters.end()) {
        derived.inputs.push_back(static_cast<uint32_t>(counter - task.counters.begin()));
      }
    }
    if (known || derived.inputs.size() != formula.inputs.size()) continue;
    task.derived.push_back(std::move(derived));
    AddSeries(formula.metric, task.rank);
  }
}

void PerfSource::AddSeries(const Metric& metric, uint32_t rank, std::string_view group) {
  Series& s = series_.emplace_back();
  s.metric = metric;
  s.tags.Set("task", std::to_string(rank));
  if (!group.empty()) s.tags.Set("group", group);
  values_.push_back(kMissing);
}

// One note for each reason, with the events it kept from being counted.
void PerfSource::NoteFailures(std::span<const int> descriptors) {
  std::map<std::string, std::vector<std::string_view>> failures;
  for (size_t i = 0; i < descriptors.size(); ++i) {
    if (descriptors[i] >= 0 || told_[i]) continue;
    told_[i] = true;
    const bool syscalls = requests_[i].type == PERF_TYPE_TRACEPOINT;
    const std::string why =
        syscalls ? WhyNoSyscalls(-descriptors[i]) : WhyNotCounted(-descriptors[i]);
    failures[why].push_back(plan_.events[i].name);
  }
  for (const auto& [reason, events] : failures) {
    notes_.push_back(fmt::format(
        "{} {} not counted: {}", events.size() == 1 ? "event" : "events",
        fmt::format("{} {}", fmt::join(events, ", "), events.size() == 1 ? "is" : "are"), reason));
  }
}

// The numbers lack what a task did in that interval.
void PerfSource::NoteJump(uint32_t event) {
  if (jumped_[event]) return;
  jumped_[event] = true;
  notes_.push_back(fmt::format(
      "event {}: the processor's counter jumped by more than any processor can count, as "
      "is known of virtual machines; such intervals are left out of it",
      plan_.events[event].name));
}

bool PerfSource::HasHardware() const {
  return std::any_of(tasks_.begin(), tasks_.end(), [](const Task& t) { return t.hardware; });
}

void PerfSource::TaskExited(uint32_t rank) {
  const Nanos now = clock_.Monotonic();
  for (Task& task : tasks_) {
    if (task.rank != rank || task.ended) continue;
    Read(task, now);
    for (Counter& counter : task.counters) counter.fd.Reset();
    task.ended = true;
  }
}

void PerfSource::SetReleased(bool released) {
  if (std::exchange(released_, released) == released) return;
  const Nanos now = clock_.Monotonic();
  for (Task& task : tasks_) {
    task.added_released = false;
    if (task.ended) continue;
    if (released) Read(task, now);
    Switch(task, released ? PERF_EVENT_IOC_DISABLE : PERF_EVENT_IOC_ENABLE);
    if (released) continue;
    for (const Counter& counter : task.counters) {
      if (!IsSoftware(counter)) task.units[counter.unit].covered_until = now;
    }
  }
}

// The kernel passes it on to the counters of threads and children.
void PerfSource::Switch(const Task& task, unsigned long request) const {
  for (const Counter& counter : task.counters) {
    if (!IsSoftware(counter)) ioctl(counter.fd.get(), request, 0);
  }
}

void PerfSource::Sample(Nanos) {
  const Nanos now = clock_.Monotonic();
  const double seconds = sampled_at_ == 0 ? kMissing : Seconds(now - sampled_at_);
  double* to = values_.data();
  for (Task& task : tasks_) {
    if (!task.ended) {
      // The task's exec has switched on what was switched off before.
      if (task.added_released) Switch(task, PERF_EVENT_IOC_DISABLE);
      Read(task, now);
    }
    to = WriteValues(task, seconds, to);
    StartInterval(task);
  }
  sampled_at_ = now;
}

// A read gives the group of its event, which is as large as the launcher could make it: a leader
// that was not opened leaves it to the next.
void PerfSource::Read(Task& task, Nanos now) {
  for (size_t i = 0; i < task.counters.size();) {
    std::array<uint64_t, 3 + launch::kMaxEvents> words{};
    const ssize_t n = read(task.counters[i].fd.get(), words.data(), sizeof(words));
    const uint64_t count = words[0];
    if (n < static_cast<ssize_t>(4 * sizeof(uint64_t)) || count == 0 ||
        count > task.counters.size() - i ||
        static_cast<size_t>(n) != (3 + count) * sizeof(uint64_t)) {
      task.counters[i++].good = false;
      continue;
    }
    Renew(task, i, {words.data() + 1, 2 + count}, now);
    i += count;
  }
}

// `words`: time enabled, time running, values.
void PerfSource::Renew(Task& task, size_t first, std::span<const uint64_t> words, Nanos now) {
  Unit& unit = task.units[first];
  const uint64_t enabled = words[0];
  const uint64_t running = words[1];
  const std::span<Counter> counters(task.counters.data() + first, words.size() - 2);
  for (Counter& counter : counters) {
    counter.unit = static_cast<uint32_t>(first);
    counter.good = true;
    if (enabled == 0 && std::isnan(counter.value)) counter.value = 0;
  }
  unit.seen_enabled = enabled;
  unit.seen_running = running;
  const auto ran = static_cast<double>(running) - static_cast<double>(unit.running);
  const auto waited = static_cast<double>(enabled) - static_cast<double>(unit.enabled);
  // Enabled and not on the counters: this time is not known yet, the next read tells of it.
  if (ran < 0 || waited < 0 || (ran == 0 && waited > 0)) return;
  const double scale = ran > 0 ? waited / ran : 0;
  for (size_t k = 0; k < counters.size(); ++k) {
    Counter& counter = counters[k];
    const uint64_t raw = words[2 + k];
    if (ran > 0 && raw >= counter.raw && IsImpossible(raw - counter.raw, ran)) {
      counter.good = false;
      NoteJump(counter.event);
    } else if (ran > 0 && raw >= counter.raw) {
      const double added = static_cast<double>(raw - counter.raw) * scale;
      counter.value = (std::isnan(counter.value) ? 0 : counter.value) + added;
      counter.added += added;
    }
    counter.raw = raw;
  }
  unit.enabled = enabled;
  unit.running = running;
  unit.covered += now - unit.covered_until;
  unit.covered_until = now;
}

// What a counter has added in an interval of that length, in its metric's unit. If a counter was
// renewed for another length, since its task started or ended in between, it counts as if it had
// gone on like that.
double PerfSource::Increase(const Task& task, uint32_t input, double seconds) const {
  if (input == PlannedFormula::kSeconds) return seconds;
  const Counter& counter = task.counters[input];
  const Unit& unit = task.units[counter.unit];
  if (unit.covered <= 0 || !counter.good || (released_ && !IsSoftware(counter))) return kMissing;
  return counter.added * plan_.events[counter.event].scale * (seconds / Seconds(unit.covered));
}

double* PerfSource::WriteValues(Task& task, double seconds, double* to) const {
  for (const Counter& counter : task.counters) {
    const bool missing = !counter.good || (released_ && !IsSoftware(counter));
    *to++ = missing ? kMissing : counter.value * plan_.events[counter.event].scale;
  }
  std::array<double, Formula::kMaxSteps> inputs{};
  for (const Derived& derived : task.derived) {
    for (size_t i = 0; i < derived.inputs.size(); ++i) {
      inputs[i] = Increase(task, derived.inputs[i], seconds);
    }
    *to++ =
        plan_.formulas[derived.formula].formula.Evaluate({inputs.data(), derived.inputs.size()});
  }
  for (const uint32_t counter : task.ratios) {
    const Unit& unit = task.units[task.counters[counter].unit];
    const auto enabled = static_cast<double>(unit.seen_enabled - unit.sampled_enabled);
    const auto running = static_cast<double>(unit.seen_running - unit.sampled_running);
    *to++ = enabled > 0 && !released_ ? std::min(running / enabled, 1.0) : kMissing;
  }
  if (task.hardware) *to++ = task.ended ? kMissing : released_ ? 1 : 0;
  return to;
}

void PerfSource::StartInterval(Task& task) {
  for (Counter& counter : task.counters) counter.added = 0;
  for (Unit& unit : task.units) {
    unit.covered = 0;
    unit.sampled_enabled = unit.seen_enabled;
    unit.sampled_running = unit.seen_running;
  }
}

}  // namespace sonde::collect
