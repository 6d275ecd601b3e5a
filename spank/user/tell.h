// All that the plugin writes for people goes through here: these functions have the names of
// Slurm's own, which code in this namespace finds first.
//
// In srun, sbatch and salloc Slurm writes to descriptor 2. That is the user's stderr only if there
// is one (launcher/error_stream.h), which is remembered when the plugin is loaded, before any
// callback. Where it is not, nothing is written. In slurmstepd Slurm has a log, which root writes.
//
// A message is one line whatever stands in it, and shows no control characters
// (core/text/printable.h): it may quote what a user has given.
//
// A stderr that nobody reads holds no command up: what it does not take in time is left out.
//
// Thread safety: Slurm's one thread that calls the plugin.
#pragma once

#include <string_view>

#include "launcher/lifeline.h"

namespace sonde::spank {

[[gnu::format(printf, 1, 2)]] void slurm_error(const char* format, ...);
[[gnu::format(printf, 1, 2)]] void slurm_info(const char* format, ...);
[[gnu::format(printf, 1, 2)]] void slurm_verbose(const char* format, ...);
[[gnu::format(printf, 1, 2)]] void slurm_debug(const char* format, ...);
[[gnu::format(printf, 1, 2)]] void slurm_spank_log(const char* format, ...);

// In srun: the text as it is, as much of it as stderr takes before the deadline; whether that is
// all of it.
bool WriteToUser(std::string_view text, const launch::Deadline& deadline);

}  // namespace sonde::spank
