#include "daemon/collect/counters/perf.h"

#include <fmt/format.h>
#include <linux/perf_event.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "daemon/collect/counters/pfm_library.h"
#include "daemon/collect/parse.h"

namespace sonde::collect {
namespace {

struct DefaultEvent {
  std::string_view event;
  MetricDecl decl;
};
constexpr MetricDecl Declare(std::string_view name, std::string_view unit, std::string_view help) {
  return {name, unit, MetricType::kCounter, 3, Reduction::kSum, help};
}
constexpr DefaultEvent kDefaults[] = {
    {"task-clock", Declare("task_perf_task_clock_seconds_total", "seconds",
                           "Processor time of the task by the scheduler's clock.")},
    {"page-faults", Declare("task_perf_page_faults_total", "1", "Page faults.")},
    {"context-switches", Declare("task_perf_context_switches_total", "1", "Context switches.")},
    {"cpu-migrations",
     Declare("task_perf_cpu_migrations_total", "1", "Moves from one processor to another.")},
    {"cycles", Declare("task_perf_cycles_total", "1", "Processor cycles.")},
    {"instructions", Declare("task_perf_instructions_total", "1", "Instructions completed.")},
};
constexpr MetricDecl kAny = Declare("task_perf_EVENT_total", "1",
                                    "Any other event of --telemetry-events: EVENT is its name in "
                                    "small letters, all but letters and digits as '_'.");

// A group is counted only while all of it fits; processors have 4 general counters or more, of
// which the kernel's watchdog may hold one and cycles and instructions need none.
constexpr size_t kMaxHardwareGroup = 4;
constexpr size_t kMaxEventName = 96;

bool IsSoftware(uint32_t type) { return type == PERF_TYPE_SOFTWARE; }
bool CountsTask(uint32_t type) {
  return type == PERF_TYPE_HARDWARE || type == PERF_TYPE_SOFTWARE || type == PERF_TYPE_HW_CACHE ||
         type == PERF_TYPE_RAW;
}
bool IsClock(uint32_t type, uint64_t config) {
  return type == PERF_TYPE_SOFTWARE &&
         (config == PERF_COUNT_SW_TASK_CLOCK || config == PERF_COUNT_SW_CPU_CLOCK);
}

std::string MetricName(std::string_view event, bool clock) {
  std::string name = "task_perf_";
  for (const char c : event) {
    const bool upper = c >= 'A' && c <= 'Z';
    const bool plain = upper || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    name += upper ? static_cast<char>(c - 'A' + 'a') : plain ? c : '_';
  }
  return name + (clock ? "_seconds_total" : "_total");
}

Metric MakeMetric(std::string_view event, bool clock) {
  const std::string name = MetricName(event, clock);
  for (const DefaultEvent& known : kDefaults) {
    if (known.decl.name == name) return Metric(known.decl);
  }
  Metric metric(kAny);
  metric.name = name;
  metric.unit = clock ? "seconds" : "1";
  metric.help = fmt::format("Event {} of libpfm4.", event);
  return metric;
}

std::string_view Trim(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

}  // namespace

struct PerfSource::Encoded {
  Event event;
  launch::PerfEvent request;
};

PerfSource::PerfSource(std::string_view list) {
  const PfmLibrary pfm;
  std::vector<Encoded> encoded;
  const auto add = [&](std::string_view text) {
    const std::string name(text);
    perf_event_attr attr = {};
    attr.size = sizeof(attr);
    if (name.size() > kMaxEventName) {
      notes_.push_back(fmt::format("event {}... is not counted: no event has so long a name",
                                   name.substr(0, 32)));
    } else if (const Status status = pfm.Encode(name, attr); !status.ok()) {
      notes_.push_back(
          fmt::format("event {} is not counted: {}; `showevtinfo` of libpfm4 lists "
                      "the events of a machine",
                      name, status.message()));
    } else if (!CountsTask(attr.type)) {
      notes_.push_back(
          fmt::format("event {} is not counted: it cannot be counted for single tasks", name));
    } else {
      const bool clock = IsClock(attr.type, attr.config);
      encoded.push_back({{name, MakeMetric(name, clock), clock ? 1e-9 : 1.0, false},
                         {attr.type, 0, attr.config, attr.config1, attr.config2}});
    }
  };
  if (Trim(list).empty()) list = "default";
  while (!list.empty()) {
    const size_t comma = list.find(',');
    const std::string_view name = Trim(list.substr(0, comma));
    list = comma == std::string_view::npos ? std::string_view{} : list.substr(comma + 1);
    if (name == "default") {
      for (const DefaultEvent& event : kDefaults) add(event.event);
    } else if (!name.empty()) {
      add(name);
    }
  }
  Arrange(encoded);
}

// Drops what is there twice or too much, and makes groups: all software events together, hardware
// events by kMaxHardwareGroup, in the order given.
void PerfSource::Arrange(std::vector<Encoded>& encoded) {
  std::vector<Encoded> kept;
  for (Encoded& e : encoded) {
    const bool twice = std::any_of(kept.begin(), kept.end(), [&](const Encoded& k) {
      return k.event.metric.name == e.event.metric.name;
    });
    if (twice) continue;
    if (kept.size() == launch::kMaxEvents) {
      notes_.push_back(fmt::format("event {} is not counted: {} events are the most there can be",
                                   e.event.name, launch::kMaxEvents));
      continue;
    }
    kept.push_back(std::move(e));
  }
  std::stable_partition(kept.begin(), kept.end(),
                        [](const Encoded& e) { return IsSoftware(e.request.type); });
  size_t hardware = 0;
  for (size_t i = 0; i < kept.size(); ++i) {
    const bool leader =
        IsSoftware(kept[i].request.type) ? i == 0 : hardware++ % kMaxHardwareGroup == 0;
    kept[i].request.leader = leader ? 1 : 0;
    requests_.push_back(kept[i].request);
    events_.push_back(std::move(kept[i].event));
  }
}

void PerfSource::AddTask(uint32_t rank, std::span<const int> descriptors) {
  if (descriptors.size() != requests_.size()) {
    for (const int fd : descriptors) Fd(fd).Close();
    if (!std::exchange(noted_mismatch_, true)) {
      notes_.push_back(
          fmt::format("task {}: no events are counted: the launcher opened {} for {}; other tasks "
                      "may lack them too",
                      rank, descriptors.size(), requests_.size()));
    }
    return;
  }
  Task task;
  task.rank = rank;
  for (size_t i = 0; i < descriptors.size(); ++i) {
    if (descriptors[i] < 0) {
      NoteFailure(events_[i], -descriptors[i]);
      continue;
    }
    task.counters.push_back({Fd(descriptors[i]), i, 0});
    Series& s = series_.emplace_back();
    s.metric = events_[i].metric;
    s.tags.Set("task", std::to_string(rank));
    values_.push_back(kMissing);
  }
  tasks_.push_back(std::move(task));
  ++generation_;
}

void PerfSource::NoteFailure(Event& event, int error) {
  if (std::exchange(event.noted, true)) return;
  const char* why = std::strerror(error);
  if (error == ENOENT || error == EOPNOTSUPP || error == ENODEV) {
    why = "this machine has no such counter, as is common in virtual machines";
  } else if (error == EACCES || error == EPERM) {
    why = "not permitted; see kernel.perf_event_paranoid";
  }
  notes_.push_back(fmt::format("event {} is not counted: {}", event.name, why));
}

void PerfSource::TaskExited(uint32_t rank) {
  for (Task& task : tasks_) {
    if (task.rank != rank) continue;
    Read(task);
    for (Counter& counter : task.counters) counter.fd.Close();
  }
}

void PerfSource::Sample(Nanos) {
  size_t column = 0;
  for (Task& task : tasks_) {
    Read(task);
    for (const Counter& counter : task.counters) {
      values_[column++] = counter.value * events_[counter.event].scale;
    }
  }
}

// A read gives the group of its event, which is as large as the launcher could make it: a leader
// that was not opened leaves the others on their own.
void PerfSource::Read(Task& task) {
  for (size_t i = 0; i < task.counters.size();) {
    if (!task.counters[i].fd) return;
    std::array<uint64_t, 3 + launch::kMaxEvents> words{};
    const ssize_t n = read(task.counters[i].fd.get(), words.data(), sizeof(words));
    const uint64_t count = words[0];
    if (n < static_cast<ssize_t>(4 * sizeof(uint64_t)) || count == 0 ||
        count > task.counters.size() - i ||
        static_cast<size_t>(n) != (3 + count) * sizeof(uint64_t)) {
      task.counters[i++].value = kMissing;
      continue;
    }
    const auto enabled = static_cast<double>(words[1]);
    const auto running = static_cast<double>(words[2]);
    for (size_t k = 0; k < count; ++k) {
      const auto value = static_cast<double>(words[3 + k]);
      double& to = task.counters[i + k].value;
      // Enabled and never running: it did not fit on the counters.
      const double scaled = running > 0   ? value * (enabled / running)
                            : enabled > 0 ? kMissing
                                          : value;
      to = std::fmax(to, scaled);
      if (std::isnan(scaled) && to == 0) to = kMissing;
    }
    i += count;
  }
}

std::vector<MetricDecl> PerfMetrics() {
  std::vector<MetricDecl> metrics;
  for (const DefaultEvent& event : kDefaults) metrics.push_back(event.decl);
  metrics.push_back(kAny);
  return metrics;
}

}  // namespace sonde::collect
