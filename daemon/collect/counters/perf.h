// Hardware and software counters of the tasks (perf events).
//
// Which events are counted is the user's choice by --telemetry-events; libpfm4 knows their names
// on this machine. The launcher opens them for every task, so this source only asks for them
// (events()) and reads the descriptors it is given. An event that does not exist here or cannot be
// opened is noted once with the reason; the others are counted.
//
// Events that fit on the counters together are read as one group, in one system call. If the
// kernel had to share the counters, a value is scaled by the time it was counted; such a value is
// an estimate. Counters include all threads and descendants of a task and are read for the last
// time when the task has ended.
//
// Thread safety: none; the daemon's one thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/launch.h"
#include "daemon/collect/fd.h"
#include "daemon/collect/source.h"

namespace sonde::collect {

class PerfSource final : public Source {
 public:
  // `list`: libpfm4's event names between commas; "default" stands for the default events, as does
  // an empty list.
  explicit PerfSource(std::string_view list);

  // What the launcher is to open for every task, in this order.
  const std::vector<launch::PerfEvent>& events() const { return requests_; }
  // What it has opened for one task, in the order of events(): descriptors, which belong to this
  // source from now on, or -errno. A read of one gives its whole group: the number of events, the
  // time enabled, the time running and the values (PERF_FORMAT_GROUP, _TOTAL_TIME_ENABLED,
  // _TOTAL_TIME_RUNNING). If their number is not that of events(), nothing of the task is counted.
  void AddTask(uint32_t rank, std::span<const int> descriptors);
  void TaskExited(uint32_t rank);

  std::string_view name() const override { return "perf"; }
  Group group() const override { return Group::kTask; }
  bool counts_from_boot() const override { return false; }
  void Sample(Nanos now) override;

 private:
  struct Event {
    std::string name;
    Metric metric;
    double scale = 1;
    bool noted = false;
  };
  struct Counter {
    Fd fd;
    size_t event;
    double value = 0;
  };
  struct Task {
    uint32_t rank;
    std::vector<Counter> counters;  // those that were opened
  };
  struct Encoded;

  void Arrange(std::vector<Encoded>& encoded);
  void NoteFailure(Event& event, int error);
  static void Read(Task& task);

  std::vector<Event> events_;  // as requests_
  std::vector<launch::PerfEvent> requests_;
  std::vector<Task> tasks_;
  bool noted_mismatch_ = false;
};

std::vector<MetricDecl> PerfMetrics();

}  // namespace sonde::collect
