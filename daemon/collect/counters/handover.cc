#include "daemon/collect/counters/handover.h"

#include <fmt/core.h>

namespace sonde::collect {

void Handover::SetPaused(bool paused) {
  paused_ = paused;
  perf_.SetReleased(paused_ || profiler_);
}

void Handover::Look(Nanos now) {
  if (!perf_.HasHardware()) return;
  processes_.clear();
  tasks_.ListProcesses(processes_);
  const std::string& tool = watch_.Look(processes_);
  if (profiler_ == !tool.empty()) return;
  profiler_ = !tool.empty();
  perf_.SetReleased(paused_ || profiler_);
  if (profiler_) {
    since_ = now;
    Note(fmt::format("the processor's counters were released at {} for {}", FormatTime(now), tool));
  } else {
    Note(fmt::format("the processor's counters are {} since {}, {} after they were released",
                     paused_ ? "paused" : "counted again", FormatTime(now),
                     FormatDuration(now - since_)));
  }
}

void Handover::Note(std::string text) {
  if (noted_ == kMaxNotes) return;
  if (++noted_ == kMaxNotes) text += "; more of this is not told";
  notes_.push_back(std::move(text));
}

}  // namespace sonde::collect
