#include "spank/describe.h"

#include <limits.h>
#include <unistd.h>

#include <charconv>

#include "core/step_environment.h"

namespace sonde::spank {
namespace {

namespace key = launch::key;

constexpr size_t kMaxCommand = 4096;

void AddIfAny(launch::Writer& message, std::string_view name, std::string_view value) {
  if (!value.empty()) message.Add(name, value);
}

// Where Slurm's own commands are, followed by a colon: a head asks squeue. They are beside srun,
// and slurmstepd is in the sbin beside their bin. Empty if the kernel does not tell.
std::string FolderOfCommands() {
  char program[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", program, sizeof(program));
  std::string_view folder(program, length > 0 ? static_cast<size_t>(length) : 0);
  folder = folder.substr(0, folder.find_last_of('/') + 1);
  constexpr std::string_view kSbin = "/sbin/";
  if (folder.ends_with(kSbin)) {
    return std::string(folder.substr(0, folder.size() - kSbin.size())) + "/bin:";
  }
  if (folder.size() <= 1) return "";
  return std::string(folder.substr(0, folder.size() - 1)) + ":";
}

std::string Command(spank_t spank) {
  int argc = 0;
  char** argv = nullptr;
  std::string command;
  if (spank_get_item(spank, S_JOB_ARGV, &argc, &argv) != ESPANK_SUCCESS) return command;
  for (int i = 0; i < argc && argv[i] != nullptr && command.size() < kMaxCommand; ++i) {
    if (i > 0) command += ' ';
    command += argv[i];
  }
  command.resize(std::min(command.size(), kMaxCommand));
  // One line: the writer would cut a script given with `bash -c` at its first.
  for (char& c : command) {
    if (c == '\n') c = ' ';
  }
  return command;
}

// From the time the job will be ended to the time it began, which some releases of Slurm tell.
void AddTimeLimit(const launch::Environment& environment, launch::Writer& message) {
  const auto seconds = [&](std::string_view name) -> int64_t {
    const std::string_view text = environment.First(name);
    int64_t value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
  };
  const int64_t start = seconds("SLURM_JOB_START_TIME");
  const int64_t end = seconds("SLURM_JOB_END_TIME");
  constexpr int64_t kLongest = 10LL * 366 * 86400;
  if (start > 0 && end > start && end - start < kLongest) {
    message.Add(key::kTimeLimit, (end - start) * kSecond);
  }
}

}  // namespace

std::string StepName(uint32_t step) {
  if (step == SLURM_BATCH_SCRIPT) return "batch";
  if (step == SLURM_INTERACTIVE_STEP) return "interactive";
  return std::to_string(step);
}

// srun sets one variable for each component. They count only if this step's job is among them: a
// script of another job may have left its own.
std::string NamingJob(uint32_t job, const launch::Environment& environment) {
  std::string own = std::to_string(job);
  for (const std::string_view prefix : {"SLURM_JOB_ID_HET_GROUP_", "SLURM_JOB_ID_PACK_GROUP_"}) {
    std::string_view leader;
    for (uint32_t component = 0;; ++component) {
      const auto id = environment.Find(std::string(prefix) + std::to_string(component));
      if (!id) break;
      if (component == 0) leader = *id;
      if (*id == own) return std::string(leader);
    }
  }
  return own;
}

void AddStep(spank_t spank, std::string_view job, const launch::Environment& environment,
             const PluginOptions& options, const PluginConfig& config, launch::Writer& message) {
  message.Add(key::kJob, job);
  message.Add(key::kStep, StepName(Item<uint32_t>(spank, S_JOB_STEPID).value_or(0)));
  AddIfAny(message, key::kArrayJob, environment.First("SLURM_ARRAY_JOB_ID"));
  AddIfAny(message, key::kArrayTask, environment.First("SLURM_ARRAY_TASK_ID"));
  AddIfAny(message, key::kHetJob,
           environment.First("SLURM_HET_JOB_ID", "SLURM_JOB_ID_HET_GROUP_0",
                             "SLURM_JOB_ID_PACK_GROUP_0"));
  AddIfAny(message, key::kCluster, environment.First("SLURM_CLUSTER_NAME"));
  AddIfAny(message, key::kJobName, environment.First("SLURM_JOB_NAME"));
  AddIfAny(message, key::kUser, environment.First("SLURM_JOB_USER", "USER", "LOGNAME"));
  AddIfAny(message, key::kAccount, environment.First("SLURM_JOB_ACCOUNT"));
  AddIfAny(message, key::kPartition, environment.First("SLURM_JOB_PARTITION"));
  AddIfAny(message, key::kCommand, Command(spank));
  AddIfAny(message, key::kHome, environment.First("HOME"));
  AddIfAny(message, key::kArchive, environment.First("SONDE_ARCHIVE"));
  AddTimeLimit(environment, message);
  message.Add(key::kLevel, options.level);
  message.Add(key::kPeriod, options.period);
  AddIfAny(message, key::kEventList, options.events);
  AddIfAny(message, key::kAlarms, options.alarms);
  AddIfAny(message, key::kCalls, preload::NamesOf(AskedCalls(options)));
  AddIfAny(message, key::kTags, options.tags);
  for (const std::string& lowered : options.lowered) message.Add(key::kNote, lowered);
  message.Add(key::kConfig, config.path);
  KeptEnvironment kept(
      [&](std::string_view entry) { message.AddIfRoom(key::kEnvironment, entry); });
  environment.ForEach([&](std::string_view entry) { kept.Offer(entry); });
}

std::vector<std::string> DaemonEnvironment(const launch::Environment& environment) {
  constexpr std::string_view kNames[] = {
      "HOME=", "USER=", "LOGNAME=", "LANG=", "TZ=", "TMPDIR=", "SLURM_CONF="};
  constexpr std::string_view kPrefixes[] = {"SONDE_", "FI_", "LC_", "XDG_"};
  // Where an application finds its daemon; a daemon is no application.
  constexpr std::string_view kNot[] = {"SONDE_SOCKET=", "SONDE_LEVEL="};
  const auto begins = [](std::string_view entry, const auto& with) {
    for (const std::string_view prefix : with) {
      if (entry.starts_with(prefix)) return true;
    }
    return false;
  };
  std::vector<std::string> kept = {"PATH=" + FolderOfCommands() + "/usr/sbin:/usr/bin:/sbin:/bin"};
  environment.ForEach([&](std::string_view entry) {
    if ((begins(entry, kNames) || begins(entry, kPrefixes)) && !begins(entry, kNot)) {
      kept.emplace_back(entry);
    }
  });
  return kept;
}

}  // namespace sonde::spank
