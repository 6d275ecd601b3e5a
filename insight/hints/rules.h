// The rules of hints: files in TOML (https://toml.io/en/v1.0.0), a table for each hint.
//
//   [hint.idle_cpus]
//   when   = "cpus >= 2 and cpus_busy < 0.6 * cpus"       a condition (core/formula/formula.h) over
//   facts worth  = "(cpus - cpus_busy) / cpus"                  share of the step's cost that it is
//   about says   = "{cpus_busy} of {cpus} CPUs were busy."      what is wrong why    = "The step
//   used {cpus_busy} CPUs ..."         the figures from which that is concluded change = "#SBATCH
//   --cpus-per-task={needed|whole}"     what helps let.needed = "max(1, ceil(cpus_busy / tasks))"
//   numbers of its own; a unit may follow: unit.needed = "bytes" kind   = "limit" no mistake: what
//   the step is limited by; at most
//                                                  one of these is given, as the last one
//
// {name} in a text is the fact or number in its unit; {name|whole} rounds up to a whole number,
// {name|percent}, {name|mem} is Slurm's 12G, {name|time} Slurm's 1-02:30:00. A file that is read
// later replaces rules of the same name; `off = true` takes one away.
//
// Thread safety: values and functions without state.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/formula/formula.h"
#include "core/status.h"
#include "insight/hints/message.h"

namespace sonde::insight {

enum class HintKind { kMistake, kLimit };

struct HintRule {
  std::string name;
  bool off = false;
  HintKind kind = HintKind::kMistake;
  Formula when;
  Formula worth;
  std::vector<std::pair<std::string, Formula>> lets;  // later ones may use earlier ones
  std::map<std::string, std::string> units;           // of these
  Message says;
  Message why;
  Message change;
};

// kInvalid names the file, the line and what was expected. `file` is for that alone.
Result<std::vector<HintRule>> ParseHintRules(std::string_view toml, std::string_view file);

// The text of the rules that Sonde comes with.
std::string_view DefaultHintRules();

// These, and all files *.toml of the directories in the order of their names, later ones replacing
// earlier ones. A directory that does not exist has none.
Result<std::vector<HintRule>> LoadHintRules(const std::vector<std::string>& directories);

}  // namespace sonde::insight
