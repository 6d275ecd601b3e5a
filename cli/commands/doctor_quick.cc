// sonde doctor --quick: for Slurm's HealthCheckProgram, which runs on every node every few minutes.
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <vector>

#include "cli/commands/doctor_checks.h"
#include "cli/install.h"
#include "launcher/read_file.h"
#include "launcher/site/node_counters.h"

namespace sonde::cli {
namespace {

constexpr uint64_t kRecent = 3600;  // seconds
constexpr char kAccessList[] = "system.posix_acl_access";

namespace fs = std::filesystem;

// Something that keeps users from a file.
struct Kept {
  std::string text;  // "": nothing
  Verdict verdict = Verdict::kBad;
};

// What is closed to others may be open to all users of the site by a group or an access list, and
// only the site knows who is in these. With a list the group's bits are what it gives at most.
Verdict VerdictOnClosed(const fs::path& path, const struct stat& info, mode_t need) {
  const bool others = info.st_gid != 0 || getxattr(path.c_str(), kAccessList, nullptr, 0) > 0;
  return others && (info.st_mode & (need << 3)) != 0 ? Verdict::kWarning : Verdict::kBad;
}

// The first directory above the file that users may not pass through for certain, else the first
// that some may not.
Kept ClosedDirectory(const fs::path& file) {
  Kept kept;
  for (fs::path directory = file.parent_path();; directory = directory.parent_path()) {
    struct stat info {};
    if (stat(directory.c_str(), &info) == 0 && (info.st_mode & S_IXOTH) == 0) {
      const Verdict verdict = VerdictOnClosed(directory, info, S_IXOTH);
      if (verdict == Verdict::kBad) {
        return {
            fmt::format("users cannot get to {}: chmod o+x {}", file.string(), directory.string())};
      }
      if (kept.text.empty()) {
        kept = {fmt::format("only users whom the group or the access list of {} lets in get to {}",
                            directory.string(), file.string()),
                verdict};
      }
    }
    if (directory == directory.parent_path()) return kept;
  }
}

// Daemons and srun run as users; the health check runs as root, to whom more is allowed. `need`:
// S_IXOTH or S_IROTH.
Kept KeepsUsersFrom(const std::string& path, mode_t need) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return {"no " + path};
  const bool execute = need == S_IXOTH;
  if (execute && IsMountedNoexec(path)) {
    return {path + " is on a file system that is mounted noexec"};
  }
  Kept kept;
  if ((info.st_mode & need) == 0) {
    const char* const done = execute ? "executed" : "read";
    if (VerdictOnClosed(path, info, need) == Verdict::kBad) {
      return {fmt::format("{} cannot be {} by users; chmod {} it", path, done,
                          execute ? "755" : "644")};
    }
    kept = {
        fmt::format("{} can be {} only by users whom its group or access list lets", path, done),
        Verdict::kWarning};
  }
  std::error_code error;
  for (const fs::path& way : {fs::absolute(path, error), fs::canonical(path, error)}) {
    const Kept closed = ClosedDirectory(way);
    if (kept.text.empty() || (!closed.text.empty() && closed.verdict > kept.verdict)) kept = closed;
  }
  return kept;
}

Finding FindingOf(const char* what, const Kept& kept) {
  return kept.verdict == Verdict::kBad ? Bad(what, kept.text) : Warning(what, kept.text);
}

Finding CheckUsersMayStart() {
  const Result<std::string> path = SondedPath();
  if (!path.ok()) return Bad("daemon", std::string(path.status().message()));
  Kept some;
  for (const char* suffix : {"", "-head"}) {
    const Kept kept = KeepsUsersFrom(*path + suffix, S_IXOTH);
    if (!kept.text.empty() && kept.verdict == Verdict::kBad) return Bad("daemon", kept.text);
    if (some.text.empty()) some = kept;
  }
  const Finding found = CheckDaemon();
  return some.text.empty() || found.verdict == Verdict::kBad ? found : FindingOf("daemon", some);
}

Finding CheckUsersMayConfigure(const Environment& env) {
  Finding found = CheckConfig(env);
  if (found.verdict != Verdict::kGood || !fs::exists(env.config_path)) return found;
  const Kept kept = KeepsUsersFrom(env.config_path, S_IROTH);
  return kept.text.empty() ? found : FindingOf("configuration", kept);
}

// srun loads it as well, in scripts on the node.
Finding CheckUsersMayLoad(const std::string& slurm) {
  Finding found = CheckPlugin(slurm);
  if (found.verdict == Verdict::kBad) return found;
  const Kept kept = KeepsUsersFrom(*PluginPath(), S_IROTH);
  if (kept.text.empty() || (found.verdict != Verdict::kGood && kept.verdict != Verdict::kBad)) {
    return found;
  }
  return FindingOf("plugin", kept);
}

// The plugin's counters of all nodes on this machine; there is none before the first watched step.
std::vector<launch::NodeCounters> ReadState(const std::string& state) {
  std::vector<launch::NodeCounters> all;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(state, error)) {
    if (entry.path().extension() != ".prom") continue;
    const Result<std::string> text = launch::ReadFile(entry.path());
    if (text.ok()) all.push_back(launch::ReadCounters(*text));
  }
  return all;
}

// A profile that could not be stored is the user's affair, not the node's.
Finding CheckFailures(const std::string& state) {
  const auto now = static_cast<uint64_t>(std::time(nullptr));
  uint64_t starts = 0, last = 0;
  std::vector<std::string> recent;
  const std::vector<launch::NodeCounters> all = ReadState(state);
  for (const launch::NodeCounters& node : all) starts += node.starts;
  for (size_t i = 0; i < std::size(launch::NodeCounters::kReasons); ++i) {
    if (static_cast<launch::FailureKind>(i) == launch::FailureKind::kProfile) continue;
    uint64_t count = 0, latest = 0;
    for (const launch::NodeCounters& node : all) {
      count += node.failures[i].count;
      latest = std::max(latest, node.failures[i].last);
    }
    if (count == 0 || latest + kRecent < now) continue;
    recent.push_back(fmt::format("{} {}", launch::NodeCounters::kReasons[i], count));
    last = std::max(last, latest);
  }
  if (recent.empty()) return Good("failures", fmt::format("{} daemons started", starts));
  return Warning("failures",
                 fmt::format("daemons failed, last {} s ago ({}; {} started): see "
                             "slurmd's log",
                             now - std::min(now, last), fmt::join(recent, ", "), starts));
}

// Whether the file of a process may be run as we are. Root runs nothing that others may have made
// or may change. `folder`: the process's in /proc.
bool IsSafeToRun(const std::string& folder, const fs::path& program) {
  struct stat process {
  }, running{}, file{};
  if (stat(folder.c_str(), &process) != 0 || stat((folder + "exe").c_str(), &running) != 0 ||
      stat(program.c_str(), &file) != 0) {
    return false;
  }
  if (running.st_dev != file.st_dev || running.st_ino != file.st_ino) return false;  // replaced
  if (geteuid() != 0) return true;
  return process.st_uid == 0 && file.st_uid == 0 && (file.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

// The slurmd that has started the health check, to which it gives no PATH; "" if none has.
std::string SlurmdAbove() {
  for (pid_t process = getppid(); process > 1;) {
    const std::string folder = fmt::format("/proc/{}/", process);
    std::error_code error;
    const fs::path program = fs::read_symlink(folder + "exe", error);
    // Debian's is slurmd-wlm.
    const std::string name = program.filename();
    if ((name == "slurmd" || name.starts_with("slurmd-")) && IsSafeToRun(folder, program)) {
      return program;
    }
    const Result<std::string> stat = launch::ReadFile(folder + "stat");  // 12 (a name) S 1 ...
    if (!stat.ok()) return "";
    process = std::atoi(stat->c_str() + std::min(stat->rfind(')') + 4, stat->size()));
  }
  return "";
}

// Quicker than srun's, which needs a configuration.
std::string InstalledSlurm() {
  const std::string above = SlurmdAbove();
  std::string text = above.empty() ? "" : OutputOfProgram(above, "-V");
  if (!text.starts_with("slurm")) text = OutputOf("slurmd -V");
  return text.starts_with("slurm") ? text.substr(text.rfind(' ') + 1) : "";  // "slurm 24.11.5"
}

}  // namespace

int QuickDoctor(const Environment& env, const std::string& state) {
  const Finding findings[] = {CheckUsersMayConfigure(env), CheckUsersMayStart(),
                              CheckUsersMayLoad(InstalledSlurm()), CheckFailures(state)};
  Verdict worst = Verdict::kGood;
  std::vector<std::string> told;
  for (const Finding& finding : findings) {
    if (finding.verdict == Verdict::kGood) continue;
    worst = std::max(worst, finding.verdict);
    told.push_back(finding.what + ": " + finding.text);
  }
  if (worst == Verdict::kGood) {
    return Print(fmt::format("sonde: healthy, {}\n", findings[std::size(findings) - 1].text));
  }
  std::string line = fmt::format("sonde: {}: {}", worst == Verdict::kBad ? "failed" : "warning",
                                 fmt::join(told, "; "));
  std::replace(line.begin(), line.end(), '\n', ' ');
  static_cast<void>(Print(line + "\n"));
  return worst == Verdict::kBad ? 2 : 1;
}

}  // namespace sonde::cli
