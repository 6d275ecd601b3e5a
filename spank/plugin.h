// The plugin's state and what each of its contexts does in each callback.
//
// Slurm loads the plugin into srun, sbatch, salloc, slurmd and slurmstepd; plugin.cc finds out in
// which of them it is and calls a function below. srun.cc starts the head, slurmstepd.cc a daemon
// on every node with its first task, allocator.cc (sbatch, salloc) only validates options.
//
// There is one Context, made when the plugin is loaded.
//
// Thread safety: Slurm calls the plugin from one thread at a time.
#pragma once

#include <string>

#include "core/status.h"
#include "spank/plugin_config.h"
#include "spank/plugin_options.h"
#include "spank/slurm_spank.h"
#include "spank/slurmstepd.h"
#include "spank/srun.h"

namespace sonde::spank {

struct Context {
  PluginConfig config;
  PluginOptions options;
  Status config_error;        // printed once telemetry is asked for
  bool told_ignored = false;  // enable=accept
  SrunContext srun;           // used when loaded into srun
  StepdContext stepd;         // used when loaded into slurmstepd
};

void SrunInit(Context& context);
void SrunInitPostOpt(Context& context);
void SrunLocalUserInit(spank_t spank, Context& context);
void SrunExit(Context& context);
// When the process ends, whether Slurm has called exit or not.
void SrunUnload(const Context& context);

void AllocatorInit();
void AllocatorInitPostOpt(Context& context);

// Tells the user which of the values asked for are not granted.
inline void TellLowered(const Context& context) {
  for (const std::string& lowered : context.options.lowered) {
    slurm_spank_log("sonde: %s", lowered.c_str());
  }
}

void StepdInitPostOpt(spank_t spank, Context& context);
void StepdTaskInit(spank_t spank, Context& context);
void StepdTaskPostFork(spank_t spank, Context& context);
void StepdTaskExit(spank_t spank, Context& context);
void StepdExit(Context& context);
// When the process ends, whether Slurm has called exit or not.
void StepdUnload(Context& context);

}  // namespace sonde::spank
