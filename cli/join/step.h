// The step that this process belongs to, as seen by `sonde join`: where values go and when it
// began.
//
// Thread safety: one thread.
#pragma once

#include <string>

#include "cli/join/joined.h"

namespace sonde::join {

// Metrics by libsonde.
class StepSink final : public Sink {
 public:
  void* Register(const Series& series) override;
  void Set(void* handle, double value) override;
  void Add(void* handle, double value) override;
};

// Seconds since 1970 when this process's task began (SLURM_TASK_PID, else its parent); 0 if that
// cannot be known.
double StepStart(const std::string& proc = "/proc");

}  // namespace sonde::join
