// The step of this process, for `sonde join`: it takes the values and tells when the step
// began.
//
// Thread safety: one thread.
#pragma once

#include <string>

#include "cli/join/joined.h"

namespace sonde::join {

// Takes metrics through libsonde.
class StepSink final : public Sink {
 public:
  void* Register(const Series& series) override;
  void Set(void* handle, double value) override;
  void Add(void* handle, double value) override;
};

// Seconds since 1970 when this process's task began (SLURM_TASK_PID, else its parent); 0 if that is
// unknown.
double StepStart(const std::string& proc = "/proc");

}  // namespace sonde::join
