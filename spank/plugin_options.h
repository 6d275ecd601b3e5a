// The options of srun, sbatch and salloc: --telemetry-level, --telemetry-period,
// --telemetry-events, --telemetry-mpi, --telemetry-io, --telemetry-functions, --telemetry-alarms,
// --telemetry-tag, and the option that srun itself fills in to tell the nodes where to meet.
//
// A command validates the options typed in it (or in its #SBATCH lines), so that a mistake is told
// at submit. A value that was inherited, from the user's environment or from the job around the
// command, never stops it: a wrong one is told in one line and counts as not given. The same holds
// on the nodes, since a user can set by hand the variables in which Slurm carries values.
//
// What is given here is what is asked for; what a step gets is the site's to decide (site_grant.h).
//
// Thread safety: Slurm's one thread that calls the plugin.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "core/text/site_rules.h"
#include "core/time.h"
#include "launcher/environment.h"
#include "launcher/preload.h"
#include "spank/slurm_spank.h"

namespace sonde::spank {

struct PluginOptions {
  Asked asked;  // --telemetry-level, -period and -events, as given
  // What the step gets, once the site's rules have been applied; until then the level is 0.
  int level = 0;
  Nanos period = kDefaultPeriod;
  std::string events;
  std::vector<std::string> lowered;  // a line for each value that was asked for and is not granted

  std::string alarms;  // a file of rules; absolute where it was given, on nodes as Slurm carries it
  std::string tags;    // a=1,b=2
  // The two parts of `tags`, in srun, sbatch and salloc.
  std::string inherited_tags;
  std::string typed_tags;
  std::optional<bool> mpi;
  std::optional<bool> io;
  std::optional<bool> functions;
  std::string rendezvous;  // as given

  // On a node, a bit for each option:
  uint32_t given = 0;  // Slurm has given a value
  uint32_t told = 0;   // a wrong value was told
};

// The calls that are counted: those asked for, and at level 4 all that are not declined.
inline preload::Calls WatchedCalls(const PluginOptions& options) {
  const bool all = options.level >= 4;
  return {options.mpi.value_or(all), options.io.value_or(all), options.functions.value_or(all)};
}
// Those that somebody asked for by name.
inline preload::Calls AskedCalls(const PluginOptions& options) {
  return {options.mpi.value_or(false), options.io.value_or(false),
          options.functions.value_or(false)};
}

// Gives Slurm the options; `callback` gets their values. Called in every slurm_spank_init.
Status RegisterOptions(spank_t spank, spank_opt_cb_f callback);

// In srun, sbatch and salloc, before Slurm looks at options: SLURM_TELEMETRY_LEVEL and the like
// become options, unless the job already has them. Wrong values are taken out of the environment,
// so that Slurm sees only right ones; gives a line for each wrong value.
std::vector<std::string> SetDefaultsFromEnvironment();

// In srun, sbatch and salloc: the value of the option that was registered with `id`. A path becomes
// absolute. What was inherited never makes a typed value wrong: it gives way, and `dropped` becomes
// a line about it.
Status TakeLocalOption(int id, const char* text, PluginOptions& options, std::string& dropped);
// On a node. An error, once for an option, means that this node does not know the value, which may
// be one of a newer release: the highest level is taken then, and the default of any other option.
Status TakeRemoteOption(int id, const char* text, PluginOptions& options);

// On the node of a batch script: options that Slurm has not given come from the variables in which
// they reach the script's steps. Slurm 22.05 gives none after sbatch --export=NONE. Calls
// `wrong` with what TakeRemoteOption says.
void TakeOptionsOfScript(const launch::Environment& environment, PluginOptions& options,
                         const std::function<void(const Status&)>& wrong);

// With enable=accept, in srun, sbatch and salloc: a line if the option, typed in this command, asks
// for telemetry; "" if it does not, or was inherited from the job or the step around.
std::string TellIgnored(int id, const char* text);

// In srun, sbatch and salloc when all options are known: makes Slurm carry the values as understood
// into the job and its steps, and hides the rendezvous from tasks, Prolog and Epilog.
void SettleOptions(spank_t spank, const PluginOptions& options);

// Sets the rendezvous that the nodes get; "": none. Other plugins of Slurm see the value, and
// cli_filter/syslog writes it into the log, so it has no key yet, and no port.
void OfferRendezvous(const std::string& value);
// In srun's local_user_init, when nobody looks at options any more and before the nodes are told:
// replaces the rendezvous by `value`, which has the same length.
Status RevealRendezvous(spank_t spank, const std::string& value);
// On a node: removes the rendezvous from the tasks' environment.
void HideRendezvous(spank_t spank);

}  // namespace sonde::spank
