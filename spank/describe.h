// What a daemon is told about its step; see core/launch.h. Gathered from Slurm's items and from the
// environment, which is srun's or, on a node, the job's.
//
// Thread safety: functions without state; during a callback, as Slurm's items are.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/launch.h"
#include "spank/environment.h"
#include "spank/plugin_config.h"
#include "spank/plugin_options.h"
#include "spank/slurm_spank.h"

namespace sonde::spank {

// An item of Slurm's that is one number, if this context has it.
template <typename T>
std::optional<T> Item(spank_t spank, spank_item_t item) {
  T value{};
  if (spank_get_item(spank, item, &value) != ESPANK_SUCCESS) return std::nullopt;
  return value;
}

// "0", "batch", "interactive"
std::string StepName(uint32_t step);

// The job that gives a step its name, for srun. Of a heterogeneous job that is the leader,
// whichever components the step runs on: its steps are numbered across components, and srun's
// callbacks see one of them, not always the first. `job` is that one.
std::string NamingJob(uint32_t job, const Environment& environment);

// What every role is told: ids, names and the options.
void AddStep(spank_t spank, std::string_view job, const Environment& environment,
             const PluginOptions& options, const PluginConfig& config, launch::Writer& message);

// The variables a daemon gets of `environment`: those that concern itself. Nothing that makes the
// job's program what it is (LD_PRELOAD, LD_LIBRARY_PATH, ...).
std::vector<std::string> DaemonEnvironment(const Environment& environment);

}  // namespace sonde::spank
