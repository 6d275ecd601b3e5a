// Leaves the processor's counters to whoever needs them more, and takes them back: to a profiler in
// the step's tasks as long as it runs, and between `sonde pause counters` and `sonde resume
// counters`. What was done, and when, is told in notes.
//
// Thread safety: none; the daemon's one thread.
#pragma once

#include <string>
#include <vector>

#include "core/time.h"
#include "daemon/collect/counters/perf.h"
#include "daemon/collect/counters/profiler_watch.h"
#include "daemon/collect/job/tasks.h"

namespace sonde::collect {

class Handover {
 public:
  // `tasks` and `perf` outlive this.
  Handover(const Roots& roots, const TasksSource& tasks, PerfSource& perf)
      : watch_(roots), tasks_(tasks), perf_(perf) {}

  // The user's request; the command itself tells of it.
  void SetPaused(bool paused);
  // Looks for profilers; once for every sample. `now` is wall-clock time, for the notes.
  void Look(Nanos now);

  std::vector<std::string> TakeNotes() { return std::exchange(notes_, {}); }

 private:
  static constexpr int kMaxNotes = 16;

  void Note(std::string text);

  ProfilerWatch watch_;
  const TasksSource& tasks_;
  PerfSource& perf_;
  std::vector<TaskProcess> processes_;
  std::vector<std::string> notes_;
  int noted_ = 0;
  bool paused_ = false;
  bool profiler_ = false;
  Nanos since_ = 0;
};

}  // namespace sonde::collect
