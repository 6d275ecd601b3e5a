// What a daemon is told about its step; see launcher/launch.h. Gathered from Slurm's items and from
// the environment, which is srun's or, on a node, the job's.
//
// Thread safety: functions without state; only during a callback, when Slurm's items are valid.
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

// The job that gives a step its name, for srun. For a heterogeneous job that is the leader,
// whichever components the step runs on: its steps are numbered across components, and srun's
// callbacks see one component, not always the first. `job` is that component's job.
std::string NamingJob(uint32_t job, const launch::Environment& environment);

// What every role is told: ids, names and the options. Last the step's environment, as much of it
// as there is room for.
void AddStep(spank_t spank, std::string_view job, const launch::Environment& environment,
             const PluginOptions& options, const PluginConfig& config, launch::Writer& message);

// The variables of `environment` that a daemon gets: those that concern the daemon itself, and none
// that are meant for the job's program (LD_PRELOAD, LD_LIBRARY_PATH, ...). PATH is the folder of
// Slurm's commands and those of the system.
std::vector<std::string> DaemonEnvironment(const launch::Environment& environment);

}  // namespace sonde::spank
