#include "daemon/daemon.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <malloc.h>
#include <pwd.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "core/log.h"
#include "daemon/child_process.h"
#include "launcher/launch.h"

namespace sonde {
namespace {

// One arena keeps the private memory small. A node gives memory back at once. A head has large
// pieces of it, profiles and schemas, time and again: getting each anew from the kernel would cost
// more than what it does with them.
void PrepareMemory(Role role) {
  constexpr int kSmall = 128 << 10;
  constexpr int kLarge = 4 << 20;
  mallopt(M_ARENA_MAX, 1);
  mallopt(M_TRIM_THRESHOLD, role == Role::kNode ? kSmall : kLarge);
  if (role != Role::kNode) mallopt(M_MMAP_THRESHOLD, kLarge);
}

// A step's signals are not for us: the lifeline tells the step's end.
void PrepareProcess() {
  umask(077);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGPIPE, SIGCONT}) {
    ::signal(signal, SIG_IGN);
  }
  prctl(PR_SET_DUMPABLE, 0);  // other programs of the user have no business in the key
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
  }
}

// The launcher cannot see which signal ends us, and reads what we write to stderr.
void OnFatalSignal(int signal) {
  const auto say = [](std::string_view text) {
    [[maybe_unused]] const ssize_t n = write(STDERR_FILENO, text.data(), text.size());
  };
  say("sonded crashed: ");
  say(signal == SIGSEGV  ? "segmentation fault"
      : signal == SIGBUS ? "bus error"
      : signal == SIGILL ? "illegal instruction"
      : signal == SIGFPE ? "arithmetic error"
      : signal == SIGSYS ? "system call that is not allowed"
                         : "abort");
  say("\n");
  raise(signal);  // as if this function had not been there
}

void PrepareFatalSignals() {
  for (const int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGSYS, SIGABRT}) {
    struct sigaction now {};
    // A sanitizer has its own.
    if (sigaction(signal, nullptr, &now) != 0 || now.sa_handler != SIG_DFL) continue;
    now.sa_handler = OnFatalSignal;
    now.sa_flags = SA_RESETHAND | SA_NODEFER;
    sigaction(signal, &now, nullptr);
  }
}

bool IsOpen(int fd) { return fcntl(fd, F_GETFD) != -1; }

UniqueFd Inherit(int fd) {
  if (!IsOpen(fd)) return UniqueFd();
  fcntl(fd, F_SETFD, FD_CLOEXEC);
  return UniqueFd(fd);
}

void Wipe(std::string& text) {
  explicit_bzero(text.data(), text.size());
  text.clear();
}

// The step's key stands in the packet. A node's daemon needs its text again, for an acting head.
void ForgetKeyText(std::string& packet, LaunchMessage& launch) {
  Wipe(packet);
  if (launch.role != Role::kNode) Wipe(launch.text);
}

int Fail(LauncherLine& lifeline, const Status& status) {
  lifeline.SendState("failed", status.message());
  log::Error("{}", status.message());
  return 1;
}

// slurmstepd does not always know the user's name and home.
void FillInUser(LaunchMessage& launch) {
  if (launch.role == Role::kNode || (!launch.home.empty() && !launch.job.user.empty())) return;
  std::vector<char> buffer(16384);
  passwd entry{};
  passwd* found = nullptr;
  getpwuid_r(getuid(), &entry, buffer.data(), buffer.size(), &found);
  if (found == nullptr) return;
  if (launch.home.empty()) launch.home = found->pw_dir;
  if (launch.job.user.empty()) launch.job.user = found->pw_name;
}

Config ConfigOf(const LaunchMessage& launch, Status& error) {
  Config config = LoadWhatIsRight(launch.config_path, error);
  // The launcher also knows Slurm's own range.
  if (!launch.ports.empty()) config.port_range = launch.ports;
  return config;
}

void OpenLog(const LaunchMessage& launch, const Config& config, const Status& config_error) {
  // Our stderr is for what the launcher must know if we fail.
  log::Discard("sonded");
  if (config.syslog) log::AddSystemLog();
  if (const auto level = log::ParseLevel(config.log_level); level.ok() && !config.log_dir.empty()) {
    const std::string path =
        fmt::format("{}/sonded.{}.{}.log", config.log_dir, launch.job.id.ToString(), launch.host);
    const Status opened = log::Open("sonded", path, *level);
    if (!opened.ok()) log::Warning("{}", opened.message());
  }
  if (!config_error.ok()) log::Error("{}; left out", config_error.message());
  log::Debug("sonded " SONDE_VERSION " for step {} at level {}", launch.job.id.ToString(),
             launch.job.level);
}

}  // namespace

int RunDaemon(const std::function<std::unique_ptr<Daemon>(const DaemonSetup&)>& make) {
  UniqueFd lifeline_fd = Inherit(launch::kLifelineFd);
  Sockets sockets{Inherit(launch::kListenFd), Inherit(launch::kApplicationFd),
                  SocketFile(Inherit(launch::kProxyFd))};
  if (!lifeline_fd) {
    std::fputs("sonded is started by the Slurm plugin or by `sonde run`, not by hand\n", stderr);
    return 2;
  }
  PrepareProcess();
  PrepareFatalSignals();
  Loop loop;
  LauncherLine lifeline(loop, std::move(lifeline_fd));
  Result<std::string> packet = lifeline.ReadLaunch(5 * kSecond);
  if (!packet.ok()) return Fail(lifeline, packet.status());
  Result<LaunchMessage> launch = ParseLaunchMessage(*packet);
  if (!launch.ok()) return Fail(lifeline, launch.status());
  ForgetKeyText(*packet, *launch);
  PrepareMemory(launch->role);
  FillInUser(*launch);
  if (launch->InStep()) AdoptOrphans();
  Status config_error;
  const Config config = ConfigOf(*launch, config_error);
  OpenLog(*launch, config, config_error);
  const std::unique_ptr<Daemon> daemon = make({loop, lifeline, *launch, config, config_error});
  if (daemon == nullptr) {
    return Fail(lifeline, {Code::kInvalid, "this program has not the role asked for"});
  }
  const Status started = daemon->Start(std::move(sockets));
  if (!started.ok()) return Fail(lifeline, started);
  lifeline.SendUp(launch->InStep());
  lifeline.Start(*daemon);
  loop.Run();
  if (launch->InStep()) {
    EndChildren();
    // What is left of a daemon that does not come here is slurmstepd's to end.
    lifeline.SendState("ended");
  }
  // All is delivered and closed: destroying the rest would only cost the node time.
  std::_Exit(0);
}

}  // namespace sonde
