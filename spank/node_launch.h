// Preparing the daemon of a node: what it is told, as whom it runs, and where it is found.
//
// Thread safety: Slurm's one thread that calls the plugin.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/status.h"
#include "spank/plugin_config.h"
#include "spank/plugin_options.h"
#include "spank/rendezvous.h"
#include "spank/slurm_spank.h"
#include "spank/step_daemon.h"

namespace sonde::spank {

// Makes `daemon` ready to be started in `role`, and shows it to the tasks.
Status PrepareDaemon(spank_t spank, const PluginConfig& config, const PluginOptions& options,
                     uint32_t step, std::string_view role,
                     const std::optional<Rendezvous>& rendezvous, StepDaemon& daemon);

}  // namespace sonde::spank
