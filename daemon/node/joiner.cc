#include "daemon/node/joiner.h"

#include <fmt/core.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <vector>

#include "core/log.h"
#include "daemon/child_process.h"

namespace sonde::node {
namespace {

// The command `sonde`: beside this program in a build, else where it is installed.
std::string CommandPath() {
  char self[4096];
  const ssize_t size = readlink("/proc/self/exe", self, sizeof self);
  std::string path(self, size < 0 ? 0 : static_cast<size_t>(size));
  path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  path += "/../cli/sonde";
  return access(path.c_str(), X_OK) == 0 ? path : SONDE_COMMAND_PATH;
}

}  // namespace

Joiner::~Joiner() {
  for (const auto& [url, child] : children_) {
    loop_.Unwatch(child.pidfd.get());
    kill(child.pid, SIGTERM);
  }
}

void Joiner::Start(std::string_view text) {
  const Result<web::ScrapeTarget> target = web::DecodeScrape(text);
  if (!target.ok()) return log::Warning("from the head: {}", target.status().message());
  const std::string url = target->Url();
  if (children_.contains(url)) return;
  const Status status =
      children_.size() < kMaxTargets
          ? Spawn(*target)
          : Status(Code::kLimit, fmt::format("{} exporters are scraped already", children_.size()));
  if (!status.ok()) note_(fmt::format("exporter {} is not recorded: {}", url, status.message()));
}

Status Joiner::Spawn(const web::ScrapeTarget& target) {
  const std::string path = CommandPath();
  const std::string url = target.Url();
  std::vector<std::string> arguments = {
      "sonde", "join", "--foreground", fmt::format("--every={}ms", target.every / kMillisecond),
      "--",    url};
  std::vector<std::string> environment = {"SONDE_SOCKET=" + socket_,
                                          fmt::format("SONDE_LEVEL={}", level_)};
  for (const char* name : {"PATH", "HOME", "SLURM_JOB_ID", "SLURM_STEP_ID"}) {
    if (const char* value = std::getenv(name))
      environment.push_back(fmt::format("{}={}", name, value));
  }
  ChildProgram child;
  child.program = path;
  child.arguments = std::move(arguments);
  child.environment = std::move(environment);
  const Result<pid_t> started = StartChild(child);
  if (!started.ok()) return started.status();
  const pid_t pid = *started;
  UniqueFd pidfd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd) {
    const Status status = SystemError("watch " + path);
    kill(pid, SIGTERM);
    return status;
  }
  log::Debug("scraping {} by process {}", url, pid);
  SONDE_RETURN_IF_ERROR(loop_.Watch(pidfd.get(), EPOLLIN, [this, url](uint32_t) { OnExit(url); }));
  children_.emplace(url, Child{pid, std::move(pidfd)});
  return {};
}

void Joiner::OnExit(const std::string& url) {
  const auto found = children_.find(url);
  loop_.Unwatch(found->second.pidfd.get());
  int status = 0;
  waitpid(found->second.pid, &status, 0);
  children_.erase(found);
  if (status != 0) {
    note_(
        fmt::format("exporter {} is not recorded any more: sonde join {} {}; its messages are in "
                    "the daemon's log",
                    url, WIFSIGNALED(status) ? "was killed by signal" : "ended with code",
                    WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status)));
  }
}

}  // namespace sonde::node
