// What a step gets of what was asked for, by the rules of sonde.conf (core/text/site_rules.h).
//
// srun decides for the head and tells the user; slurmstepd decides for its node, as root, and a
// user cannot change that. Slurm tells slurmstepd the user and the groups. It has nothing that
// tells a plugin the account, the partition and the QOS, except in the environment: slurmstepd has
// written those of a batch script there, but srun those of its steps, and srun is the user's.
//
// Thread safety: Slurm's one thread that calls the plugin.
#pragma once

#include "core/status.h"
#include "launcher/environment.h"
#include "spank/plugin_config.h"
#include "spank/plugin_options.h"
#include "spank/slurm_spank.h"

namespace sonde::spank {

// Whether the step may be watched, as far as is known before its account and partition are.
inline bool MayBeWatched(const PluginConfig& config, const PluginOptions& options) {
  return options.asked.level ? *options.asked.level > 0 : config.rules.WatchesUnasked();
}

// In srun, when it has its allocation, and at submission where that decides nothing: `environment`
// is the command's.
void GrantInCommand(const launch::Environment& environment, const PluginConfig& config,
                    PluginOptions& options);

// In slurmstepd. An error means that nothing is granted.
Status GrantOnNode(spank_t spank, const PluginConfig& config, PluginOptions& options);

}  // namespace sonde::spank
