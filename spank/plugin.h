// The plugin's state and what each of its contexts does in each callback.
//
// Slurm loads the plugin into srun, sbatch, salloc, slurmd and slurmstepd; plugin.cc finds out
// where it is and calls one of the functions below. srun.cc starts the head, slurmstepd.cc a daemon
// on every node with its first task, allocator.cc (sbatch, salloc) only validates options.
//
// There is one Context, made when the plugin is loaded. Some releases run callbacks of slurmstepd
// in children that share its memory and copy its descriptors, so what they change in it stays
// changed but descriptors must not be closed there: only slurm_spank_exit does that.
//
// Thread safety: Slurm calls the plugin from one thread at a time.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <cstdint>
#include <vector>

#include "core/launch.h"
#include "spank/perf_open.h"
#include "spank/plugin_config.h"
#include "spank/plugin_options.h"
#include "spank/process.h"
#include "spank/rendezvous.h"
#include "spank/slurm_spank.h"
#include "spank/step_daemon.h"

namespace sonde::spank {

inline constexpr std::chrono::milliseconds kHeadStop{2000};
// For the list of events of a daemon that has just been started; nobody waits below level 3.
inline constexpr std::chrono::milliseconds kEventsWait{1000};

struct Context {
  PluginConfig config;
  PluginOptions options;
  Status config_error;  // told once telemetry is asked for

  // srun
  Daemon head;
  bool stopped = false;  // the head was asked to finish and had its time
  Listener listener;
  std::string key;
  Status no_head;           // why no rendezvous was offered
  uint32_t components = 0;  // of a heterogeneous step

  // slurmstepd
  StepDaemon step_daemon;
  uint32_t tasks_ended = 0;
  pid_t stepd = 0;           // slurmstepd itself, not a child that runs a callback for it
  rusage children_before{};  // what its children had used when it last waited for a task
  bool waited_for_events = false;
  AskedEvents events;
  int paranoid = 2;
  int64_t syscalls = -EPERM;  // as SyscallsTracepoint gives it
};

void SrunInit(Context& context);
void SrunInitPostOpt(Context& context);
void SrunLocalUserInit(spank_t spank, Context& context);
void SrunExit(Context& context);

void AllocatorInit();

void StepdInitPostOpt(spank_t spank, Context& context);
void StepdTaskPostFork(spank_t spank, Context& context);
void StepdTaskExit(spank_t spank, Context& context);
void StepdExit(Context& context);

}  // namespace sonde::spank
