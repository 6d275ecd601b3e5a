// sonded: started by the Slurm plugin or by `sonde run` with a lifeline as descriptor 3, never by
// hand. What it is to do stands in the launch message (core/launch.h).
#include <fcntl.h>
#include <fmt/format.h>
#include <malloc.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "core/launch.h"
#include "core/log.h"
#include "daemon/daemon.h"
#include "daemon/lifeline.h"

namespace {

using namespace sonde;

// One arena keeps the private memory small; a step's signals are not for us, its end is what the
// lifeline says.
void PrepareProcess() {
  umask(077);
  mallopt(M_ARENA_MAX, 1);
  mallopt(M_TRIM_THRESHOLD, 128 << 10);
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

bool IsOpen(int fd) { return fcntl(fd, F_GETFD) != -1; }

UniqueFd Inherit(int fd) {
  if (!IsOpen(fd)) return UniqueFd();
  fcntl(fd, F_SETFD, FD_CLOEXEC);
  return UniqueFd(fd);
}

int Fail(const Status& status) {
  log::Error("{}", status.message());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "--version") {
    std::puts("sonded " SONDE_VERSION);
    return 0;
  }
  if (argc > 1 && std::string_view(argv[1]) == "--list-metrics") return PrintMetrics();
  UniqueFd lifeline_fd = Inherit(launch::kLifelineFd);
  UniqueFd listen_fd = Inherit(launch::kListenFd);
  UniqueFd application_fd = Inherit(launch::kApplicationFd);
  if (!lifeline_fd) {
    std::fputs("sonded is started by the Slurm plugin or by `sonde run`, not by hand\n", stderr);
    return 2;
  }
  PrepareProcess();
  Loop loop;
  Lifeline lifeline(loop, std::move(lifeline_fd));
  const Result<std::string> packet = lifeline.ReadLaunch(5 * kSecond);
  if (!packet.ok()) return Fail(packet.status());
  const Result<LaunchMessage> message = ParseLaunchMessage(*packet);
  if (!message.ok()) return Fail(message.status());
  Daemon daemon(loop, lifeline, *message);
  const Status started = daemon.Start(std::move(listen_fd), std::move(application_fd));
  if (!started.ok()) return Fail(started);
  loop.Run();
  // All is delivered and closed: taking the rest apart would only cost the node time.
  log::Flush();
  std::_Exit(0);
}
