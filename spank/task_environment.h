// What the plugin puts into the environment of a step's tasks.
//
// Thread safety: Slurm's one thread that calls the plugin.
#pragma once

#include <string>

#include "spank/plugin_config.h"
#include "spank/plugin_options.h"
#include "spank/slurm_spank.h"

namespace sonde::spank {

// Where the daemon of the step is to be found, and the libraries that count calls. It may move the
// array that a JobEnvironment reads.
void ShowDaemon(spank_t spank, const PluginConfig& config, const PluginOptions& options,
                const std::string& socket);
// A program in a step that is not watched must not report to the daemon of the step around it, nor
// have the libraries that were loaded for that one.
void HideOuterDaemon(spank_t spank, const PluginConfig& config);

}  // namespace sonde::spank
