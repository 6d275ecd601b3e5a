// Hardware and software counters of the tasks (perf events), and what is derived from them.
//
// Which events are counted is the user's choice by --telemetry-events, or the event set of the
// processor (event_plan.h). The launcher opens them for every task, so this source only asks for
// them (events()) and reads the descriptors it is given. An event that does not exist here or
// cannot be opened is noted once with the reason; the others are counted.
//
// Events that fit on the counters together are read as one group, in one system call. Where the
// kernel shares the counters among groups, what was counted in an interval is scaled by the time
// enabled over the time running in it (perf_event_open(2)); which part of the time was counted is
// recorded beside it. Counters include all threads and descendants of a task and are read for the
// last time when the task has ended.
//
// A count that no processor can reach in the time is left out, and noted once for each event; the
// value is missing at that sample.
//
// The hardware counters can be released to somebody else. Meanwhile their series are missing; they
// go on from where they were.
//
// Thread safety: none; the daemon's one thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/time.h"
#include "core/unique_fd.h"
#include "daemon/collect/counters/event_plan.h"
#include "daemon/collect/read/parse.h"
#include "daemon/collect/read/source.h"
#include "launcher/launch.h"

namespace sonde::collect {

class PerfSource final : public Source {
 public:
  // `clock` measures intervals, and outlives the source.
  explicit PerfSource(const EventChoice& choice, const Clock& clock = Clock::System());

  // The events that the launcher is to open for every task, in this order.
  const std::vector<launch::PerfEvent>& events() const { return requests_; }
  // What the launcher has opened for one task, in the order of events(): descriptors, which belong
  // to this source from now on, or -errno. A read of one gives its whole group: how many events,
  // the time enabled, the time running and the values (PERF_FORMAT_GROUP, _TOTAL_TIME_ENABLED,
  // _TOTAL_TIME_RUNNING). If their number is not that of events(), no event of the task is counted.
  void AddTask(uint32_t rank, std::span<const int> descriptors);
  void TaskExited(uint32_t rank);

  // Leaves the processor's counters to others, or takes them back; software events stay.
  void SetReleased(bool released);
  bool released() const { return released_; }
  // Whether any hardware event is counted at all.
  bool HasHardware() const;

  std::string_view name() const override { return "perf"; }
  Group group() const override { return Group::kTask; }
  bool counts_from_boot() const override { return false; }
  void Sample(Nanos now) override;

 private:
  struct Counter {
    UniqueFd fd;
    uint32_t event;
    uint32_t unit;  // the first of those that are read with it
    uint64_t raw = 0;
    double value = kMissing;  // estimate of all it would have counted
    double added = 0;         // to it since the last sample
    bool good = false;        // the last read made sense
  };
  // What belongs to a read, at the first of its counters.
  struct Unit {
    uint64_t seen_enabled = 0;  // read last
    uint64_t seen_running = 0;
    uint64_t enabled = 0;  // when the values were renewed last
    uint64_t running = 0;
    uint64_t sampled_enabled = 0;  // at the last sample
    uint64_t sampled_running = 0;
    Nanos covered_until = 0;  // when the values were renewed last
    Nanos covered = 0;        // the time for which `added` stands
  };
  struct Derived {
    uint32_t formula;
    std::vector<uint32_t> inputs;  // counters of the task, or PlannedFormula::kSeconds
  };
  struct Task {
    uint32_t rank;
    bool ended = false;
    bool added_released = false;
    std::vector<Counter> counters;  // those that were opened
    std::vector<Unit> units;        // one for each counter; only that of a first one is used
    std::vector<Derived> derived;
    std::vector<uint32_t> ratios;  // a counter of each group of hardware events
    bool hardware = false;
  };

  void AddCounters(Task& task, std::span<const int> descriptors);
  void AddDerived(Task& task);
  void AddSeries(const Metric& metric, uint32_t rank, std::string_view group = {});
  void NoteFailures(std::span<const int> descriptors);
  bool IsSoftware(const Counter& counter) const { return plan_.events[counter.event].IsSoftware(); }
  void Switch(const Task& task, unsigned long request) const;
  void Read(Task& task, Nanos now);
  void Renew(Task& task, size_t first, std::span<const uint64_t> words, Nanos now);
  void NoteJump(uint32_t event);
  double Increase(const Task& task, uint32_t input, double seconds) const;
  double* WriteValues(Task& task, double seconds, double* to) const;
  static void StartInterval(Task& task);

  const Clock& clock_;
  EventPlan plan_;
  std::vector<launch::PerfEvent> requests_;
  std::vector<bool> told_;    // by event: its failure was noted
  std::vector<bool> jumped_;  // by event: an impossible count was noted
  std::vector<Task> tasks_;
  Nanos sampled_at_ = 0;
  bool released_ = false;
  bool noted_mismatch_ = false;
};

}  // namespace sonde::collect
