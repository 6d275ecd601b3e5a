// What a daemon is told about its step; see launcher/launch.h. Gathered from Slurm's items and from
// the environment, which is srun's or, on a node, the job's.
//
// Thread safety: functions without state; during a callback, as Slurm's items are.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/environment.h"
#include "launcher/launch.h"
#include "spank/job_items.h"
#include "spank/plugin_config.h"
#include "spank/plugin_options.h"
#include "spank/slurm_spank.h"

namespace sonde::spank {

// "0", "batch", "interactive"
std::string StepName(uint32_t step);

// The job that gives a step its name, for srun. Of a heterogeneous job that is the leader,
// whichever components the step runs on: its steps are numbered across components, and srun's
// callbacks see one of them, not always the first. `job` is that one.
std::string NamingJob(uint32_t job, const launch::Environment& environment);

// What every role is told: ids, names and the options.
void AddStep(spank_t spank, std::string_view job, const launch::Environment& environment,
             const PluginOptions& options, const PluginConfig& config, launch::Writer& message);

// The variables a daemon gets of `environment`: those that concern itself. Nothing that makes the
// job's program what it is (LD_PRELOAD, LD_LIBRARY_PATH, ...).
std::vector<std::string> DaemonEnvironment(const launch::Environment& environment);

}  // namespace sonde::spank
