// What the plugin puts into the environment of a step's tasks.
//
// Thread safety: Slurm's one thread that calls the plugin.
#pragma once

#include <string>

#include "spank/plugin_config.h"
#include "spank/plugin_options.h"
#include "spank/slurm_spank.h"

namespace sonde::spank {

// Tells where the step's daemon is, and loads the libraries that count calls. May move the array
// that a JobEnvironment reads.
void ShowDaemon(spank_t spank, const PluginConfig& config, const PluginOptions& options,
                const std::string& socket);
// A program in a step that is not watched must not report to the daemon of the step around it, nor
// load the libraries meant for that outer step.
void HideOuterDaemon(spank_t spank, const PluginConfig& config);

}  // namespace sonde::spank
