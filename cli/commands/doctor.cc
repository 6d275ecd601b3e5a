// sonde doctor: which parts of the installation work here, and how to mend the others.
#include <fmt/core.h>
#include <linux/perf_event.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <vector>

#include "cli/command.h"
#include "cli/commands/doctor_checks.h"
#include "core/text/settings.h"
#include "core/text/site_rules.h"
#include "daemon/link/libfabric/fabric.h"
#include "daemon/link/libfabric/socket_fabric.h"
#include "forward/job.h"
#include "launcher/read_file.h"
#include "launcher/site/node_counters.h"

namespace sonde::cli {
namespace {

Finding CheckActive(const std::string& slurm) {
  if (slurm.empty()) {
    const std::string error = OutputOf("srun --version 2>&1");
    return Warning("Slurm", fmt::format("{}; `sonde run` works all the same",
                                        error.empty() ? "there is no srun here"
                                                      : "srun does not work: " +
                                                            error.substr(error.rfind('\n') + 1)));
  }
  if (OutputOf("srun --help").find("--telemetry-level") != std::string::npos) {
    return Good("Slurm", fmt::format("{}; srun knows --telemetry-level", slurm));
  }
  return Warning("Slurm",
                 fmt::format("{}; srun does not know --telemetry-level: the plugin is not in "
                             "plugstack.conf (see the example in share/sonde)",
                             slurm));
}

// The choice that would be used, and why the others would not.
std::vector<Finding> CheckFabric(const Config& config) {
  if (config.provider == "none") {
    return {Good("fabric", "switched off: every node sends to the head")};
  }
  if (config.provider == tree::SocketFabric::kProvider) {
    return {
        Good("fabric", "provider = sockets: plain sockets between nodes, libfabric is not loaded")};
  }
  tree::FabricOptions options;
  options.provider = config.provider;
  options.interface = config.interface;
  const Result<tree::FabricFindings> findings = tree::Fabric::Examine(options);
  if (!findings.ok()) {
    return {Warning("fabric",
                    fmt::format("{}; every node sends to the head", findings.status().message()))};
  }
  std::vector<Finding> told;
  std::string setting = "provider = " + config.provider;
  if (!config.interface.empty()) setting += ", interface = " + config.interface;
  const std::string library =
      findings->library.empty() ? "" : fmt::format(" ({})", findings->library);
  told.push_back(
      Warning("fabric", setting + ": none can be used, every node sends to the head" + library));
  for (const tree::ProviderFinding& one : findings->providers) {
    told.push_back(Detail(one.chosen ? "> " + one.provider : "  " + one.provider, one.text));
    if (!one.chosen) continue;
    const std::string_view where =
        config.interface.empty() ? ", preferably where the head is reached" : "";
    const bool sockets = one.provider == tree::SocketFabric::kProvider;
    told.front() =
        Good("fabric", fmt::format("{}: {}{}{}", setting,
                                   sockets ? "plain sockets between nodes" : one.provider,
                                   sockets ? "" : where, sockets ? "" : library));
  }
  return told;
}

// 0, or the errno why this process may not count that event on itself.
int TryEvent(uint32_t type, uint64_t event) {
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.type = type;
  attr.config = event;
  attr.disabled = 1;
  attr.exclude_kernel = type == PERF_TYPE_HARDWARE;
  const auto fd = static_cast<int>(syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0));
  if (fd < 0) return errno;
  close(fd);
  return 0;
}

// Whether the destinations of running steps answer.
std::vector<Finding> CheckForwarding(const Config& config) {
  Status wrong;
  std::vector<Finding> told;
  for (const forward::Destination& to : forward::ConfiguredDestinations(config, wrong)) {
    const std::string what = "forward." + to.name;
    const std::string url = to.url.substr(0, to.url.find('?'));
    const Result<std::string> answer = forward::ProbeDestination(to);
    told.push_back(answer.ok() ? Good(what, fmt::format("{} {}", url, *answer))
                               : Warning(what, fmt::format("{} does not take series now, they wait "
                                                           "in the archive: {}",
                                                           url, answer.status().message())));
  }
  if (!wrong.ok()) told.push_back(Bad("forwarding", std::string(wrong.message())));
  return told;
}

Finding CheckPerf() {
  std::string paranoid = "?";
  std::ifstream("/proc/sys/kernel/perf_event_paranoid") >> paranoid;
  const int software = TryEvent(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK);
  const int hardware = TryEvent(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES);
  const std::string setting = fmt::format("perf_event_paranoid {}", paranoid);
  if (software != 0) {
    return Warning("perf events", fmt::format("{}: {}; under Slurm the plugin opens them as root",
                                              setting, std::strerror(software)));
  }
  if (hardware == 0) return Good("perf events", setting + ": software and hardware events");
  const char* why =
      hardware == ENOENT ? "this machine has none (a virtual machine?)" : std::strerror(hardware);
  return Warning("perf events",
                 fmt::format("{}: software events only, hardware: {}", setting, why));
}

Finding CheckArchive(const Environment& env) {
  const Result<std::string> directory = ArchiveDirectory(env);
  if (!directory.ok()) return Bad("archive", std::string(directory.status().message()));
  const auto archive = sonde::OpenArchive(*directory, kSecond, nullptr, ArchiveUse::kReading);
  if (!archive.ok()) return Bad("archive", std::string(archive.status().message()));
  const std::string& note = archive->reader->note();
  if (!std::filesystem::exists(*directory)) return Good("archive", note);
  if (!note.empty()) return Warning("archive", note);
  const std::string probe = *directory + "/.doctor";
  if (!(std::ofstream(probe) << "x").flush()) {
    return Bad("archive",
               fmt::format("{} cannot be written: {}", *directory, std::strerror(errno)));
  }
  unlink(probe.c_str());
  struct statvfs space {};
  statvfs(directory->c_str(), &space);
  const double free = static_cast<double>(space.f_bavail) * static_cast<double>(space.f_frsize);
  return Good("archive", fmt::format("{}, {:.1f} GB free", *directory, free / 1e9));
}

// Whether sonde.conf has steps watched that did not ask for it.
bool WatchesUnasked(const std::string& path) {
  SiteRules rules;
  const Result<std::string> text = launch::ReadFile(path);
  if (!text.ok()) return false;
  ForEachSetting(*text, [&](const Setting& line) {
    if (rules.Takes(line)) static_cast<void>(rules.Add(line));
    return true;
  });
  return rules.WatchesUnasked();
}

Finding CheckRetention(const Environment& env, const Config& config) {
  const bool limited = config.keep_age > 0 || config.keep_profiles > 0 || config.keep_size > 0 ||
                       config.keep_user_profiles > 0 || config.keep_user_size > 0;
  if (limited) return Good("retention", "profiles are kept within limits");
  if (!WatchesUnasked(env.config_path)) return Good("retention", "all profiles are kept");
  return Warning("retention",
                 "default_level leaves a profile of every step in its user's archive, and no limit "
                 "takes any away: set keep_age, keep_user_size or another keep_");
}

std::string SlurmVersion() {
  const std::string text = OutputOf("srun --version");  // "slurm-wlm 22.05.8"
  return text.starts_with("slurm") ? text.substr(text.rfind(' ') + 1) : "";
}

int Doctor(const Environment& env) {
  const std::string slurm = SlurmVersion();
  const Result<Config> config = LoadConfig(env.config_path);
  std::vector<Finding> findings = {CheckConfig(env), CheckDaemon(), CheckPlugin(slurm),
                                   CheckActive(slurm)};
  for (Finding& finding : CheckFabric(config.ok() ? *config : Config())) {
    findings.push_back(std::move(finding));
  }
  for (Finding& finding : CheckForwarding(config.ok() ? *config : Config())) {
    findings.push_back(std::move(finding));
  }
  findings.push_back(CheckPerf());
  findings.push_back(CheckArchive(env));
  findings.push_back(CheckRetention(env, config.ok() ? *config : Config()));
  std::string text;
  bool bad = false;
  for (const Finding& finding : findings) {
    constexpr std::string_view kMarks[] = {"ok     ", "warning", "FAILED ", "       "};
    text += fmt::format("{} {:<14} {}\n", kMarks[static_cast<size_t>(finding.verdict)],
                        finding.what, finding.text);
    bad = bad || finding.verdict == Verdict::kBad;
  }
  const int printed = Print(text);
  return bad ? kFailed : printed;
}

}  // namespace

void RegisterDoctor(Arguments app, Run& run) {
  struct Options {
    bool quick = false;
    std::string state{launch::kStateDirectory};
  };
  const auto options = std::make_shared<Options>();
  Arguments sub = app.Command("doctor", "Say what of the installation works on this machine");
  sub.Flag(
      "--quick", options->quick,
      "one line for a health check of Slurm's: exit code 0 healthy, 1 with warnings, 2 failed");
  sub.Option("--state", options->state, "with --quick, where the plugin counts failures of daemons")
      .Type("DIR")
      .ShowDefault();
  sub.OnRead([&run, options] {
    run = [options](const Environment& env) {
      return options->quick ? QuickDoctor(env, options->state) : Doctor(env);
    };
  });
}

}  // namespace sonde::cli
