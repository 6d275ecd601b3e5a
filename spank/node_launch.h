// Preparing the daemon of a node: what it is told, as whom it runs, and where it is found.
//
// Thread safety: Slurm's one thread that calls the plugin.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/status.h"
#include "launcher/site/slurm_node.h"
#include "spank/plugin_config.h"
#include "spank/plugin_options.h"
#include "spank/rendezvous.h"
#include "spank/slurm_spank.h"
#include "spank/step_daemon.h"

namespace sonde::spank {

// What there is to know of the node, before there is a task: later callbacks may run in the
// namespaces of the job.
struct NodeFacts {
  std::string name;  // as Slurm calls it
  launch::SlurmOnNode slurm;
  bool alone = false;  // nobody else has a job there; known at level 3 and above
};
NodeFacts LookAtNode(spank_t spank, const PluginConfig& config, int level);

// Makes `daemon` ready to be started in `role`, and shows it to the tasks.
Status PrepareDaemon(spank_t spank, const PluginConfig& config, const PluginOptions& options,
                     uint32_t step, std::string_view role,
                     const std::optional<Rendezvous>& rendezvous, const NodeFacts& facts,
                     StepDaemon& daemon);

}  // namespace sonde::spank
