// The one finished step that a command is about.
//
// Thread safety: functions without state.
#pragma once

#include <functional>
#include <string>

#include "cli/command.h"
#include "core/status.h"
#include "profiles/archive/archive.h"
#include "profiles/model/profile.h"

namespace sonde::cli {

struct FinishedStep {
  std::string key;
  Profile profile;
};
// The newest step that has ended and that `id` means, as in 4711.0; of a job its newest step.
// kNotFound also if it still runs.
Result<FinishedStep> LoadFinished(const Archive& archive, const std::string& id);

// What a command about a finished step prints: `text` of it, or why there is none. The exit code.
int ShowFinished(
    const std::string& id, const Environment& env,
    const std::function<Result<std::string>(const Archive&, const FinishedStep&)>& text);

// "4711.0 (heat): 4 nodes, 16 tasks, 8.21 s".
std::string TitleOf(const Profile& profile);

// A value in one of the units of insight/steps/watched.h: "0.4 CPUs", "3.1 MiB/s", "12 %".
std::string ValueText(double value, std::string_view unit);

// "2 min 3 s after the start", "from the start".
std::string SinceText(Nanos time, const JobDescription& job, bool from_start);

}  // namespace sonde::cli
