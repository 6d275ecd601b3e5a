// sonde doctor --quick: for Slurm's HealthCheckProgram, which runs on every node every few minutes.
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <vector>

#include "cli/commands/doctor_checks.h"
#include "cli/install.h"
#include "launcher/node_counters.h"
#include "launcher/read_file.h"

namespace sonde::cli {
namespace {

constexpr uint64_t kRecent = 3600;  // seconds

// Daemons run as users; the health check runs as root, to whom more is allowed.
Finding CheckUsersMayStart() {
  const Result<std::string> path = SondedPath();
  if (!path.ok()) return Bad("daemon", std::string(path.status().message()));
  for (const char* suffix : {"", "-head"}) {
    const std::string program = *path + suffix;
    struct stat info {};
    if (stat(program.c_str(), &info) != 0) return Bad("daemon", "no " + program);
    if ((info.st_mode & S_IXOTH) == 0) {
      return Bad("daemon", fmt::format("{} cannot be executed by users; chmod 755 it", program));
    }
  }
  return CheckDaemon();
}

// The plugin's counters of all nodes on this machine; there is none before the first watched step.
std::vector<launch::NodeCounters> ReadState(const std::string& state) {
  std::vector<launch::NodeCounters> all;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(state, error)) {
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

// Quicker than srun's, which needs a configuration.
std::string InstalledSlurm() {
  const std::string text = OutputOf("slurmd -V");  // "slurm 24.11.5"
  return text.starts_with("slurm") ? text.substr(text.rfind(' ') + 1) : "";
}

}  // namespace

int QuickDoctor(const Environment& env, const std::string& state) {
  const Finding findings[] = {CheckConfig(env), CheckUsersMayStart(), CheckPlugin(InstalledSlurm()),
                              CheckFailures(state)};
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
