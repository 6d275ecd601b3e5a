// What `sonde doctor` looks at: findings, and the checks that its quick form shares with the long
// one.
//
// Thread safety: one thread, main's.
#pragma once

#include <string>
#include <utility>

#include "cli/command.h"

namespace sonde::cli {

enum class Verdict : unsigned char { kGood, kWarning, kBad, kDetail };

struct Finding {
  Verdict verdict;
  std::string what;
  std::string text;
};

inline Finding Good(std::string what, std::string text) {
  return {Verdict::kGood, std::move(what), std::move(text)};
}
inline Finding Warning(std::string what, std::string text) {
  return {Verdict::kWarning, std::move(what), std::move(text)};
}
inline Finding Bad(std::string what, std::string text) {
  return {Verdict::kBad, std::move(what), std::move(text)};
}
// A detail of the finding above.
inline Finding Detail(std::string what, std::string text) {
  return {Verdict::kDetail, std::move(what), std::move(text)};
}

// The stdout of a command; "" if it cannot be run. `command` is ours, never the user's.
std::string OutputOf(const std::string& command);

// The same of a program at a path with one argument, without a shell.
std::string OutputOfProgram(const std::string& path, const std::string& argument);

Finding CheckConfig(const Environment& env);
// Both programs are there, start and have this version.
Finding CheckDaemon();
// `slurm`: the version of the Slurm that is installed, such as 22.05.8; "": not known.
Finding CheckPlugin(const std::string& slurm);

// One line for Slurm's HealthCheckProgram: what an installation needs on a node, and how daemons
// have fared of late. `state`: the plugin's directory of counters. Gives 0, 1 for warnings, 2 for
// failures.
int QuickDoctor(const Environment& env, const std::string& state);

}  // namespace sonde::cli
