// What the plugin puts into the environment of a step's tasks.
//
// Thread safety: Slurm's one thread that calls the plugin.
#pragma once

#include <string>

#include "spank/plugin_config.h"
#include "spank/plugin_options.h"
#include "spank/slurm_spank.h"

namespace sonde::spank {

// Both change slurmstepd's own environment, which all tasks and TaskEpilog get, and take out of it
// what is for the tasks of a step around this one alone: libraries that count calls, PROXY_PATH.
// Both may move the array that a JobEnvironment reads.

// Tells where the step's daemon is.
void ShowDaemon(spank_t spank, const PluginConfig& config, const PluginOptions& options,
                const std::string& socket);
// A program in a step that is not watched must not report to the daemon of the step around it, nor
// load the libraries meant for that outer step.
void HideOuterDaemon(spank_t spank, const PluginConfig& config);

// In the process of a task, before it becomes the task's program: loads the libraries that count
// calls into the task, if it can read them. The task is in its container by then, if a plugin that
// comes before this one in plugstack.conf has put it there. TaskProlog gets this environment, too:
// the libraries see to that themselves (libclient/interpose/task_prolog.h).
void PreloadInTask(spank_t spank, const PluginConfig& config, const PluginOptions& options);

// In the process of a task, too: sends programs for metric-proxy to the daemon's socket at `path`.
// Only there it is known whether the socket could be made, and whether the task sees that file and
// which others: it may have a /tmp of its own.
void ShowProxyInTask(spank_t spank, const std::string& path);

}  // namespace sonde::spank
