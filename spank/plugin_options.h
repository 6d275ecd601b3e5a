// The options of srun, sbatch and salloc: --telemetry-level, --telemetry-period,
// --telemetry-events, --telemetry-mpi, --telemetry-io, --telemetry-alarms, --telemetry-tag, and the
// one that srun itself fills in to tell the nodes where to meet.
//
// They are validated where they are given, so that a mistake is told at submit, and again on the
// nodes, since the variables in which Slurm carries them can be set by hand.
//
// Thread safety: Slurm's one thread that calls the plugin.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/status.h"
#include "core/time.h"
#include "spank/slurm_spank.h"

namespace sonde::spank {

struct PluginOptions {
  int level = 0;
  Nanos period = kDefaultPeriod;
  std::string events;  // as given
  std::string alarms;  // a file of rules, as given
  std::string tags;    // a=1,b=2
  std::optional<bool> mpi;
  std::optional<bool> io;
  std::string rendezvous;  // as given
};

// Whether calls of MPI and for files are counted: if asked for, and at level 4 unless declined.
inline bool WatchesMpi(const PluginOptions& options) {
  return options.mpi.value_or(options.level >= 4);
}
inline bool WatchesIo(const PluginOptions& options) {
  return options.io.value_or(options.level >= 4);
}

// Gives Slurm the options; `callback` gets their values. To be called in every slurm_spank_init.
Status RegisterOptions(spank_t spank, spank_opt_cb_f callback);

// In srun, sbatch and salloc: SLURM_TELEMETRY_LEVEL and its kin become options, unless
// the job already has them.
void SetDefaultsFromEnvironment();

// The value of the option that was registered with `id`.
Status SetOption(int id, const char* text, PluginOptions& options);

// Whether the file of alarm rules, if there is one, can be read.
Status CheckAlarms(const PluginOptions& options);

// What the nodes get as rendezvous; "": nothing.
void OfferRendezvous(const std::string& value);

}  // namespace sonde::spank
