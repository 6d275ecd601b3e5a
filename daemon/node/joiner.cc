#include "daemon/node/joiner.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <utility>
#include <vector>

#include "core/log.h"
#include "daemon/child_process.h"

namespace sonde::node {
namespace {

using tree::JoinedMessage;

constexpr int kReportFd = 3;  // of the child
constexpr size_t kMaxLine = 4096;
constexpr size_t kMaxWhy = 512;

// The command `sonde`: beside this program in a build, else where it is installed.
std::string CommandPath() {
  char self[4096];
  const ssize_t size = readlink("/proc/self/exe", self, sizeof self);
  std::string path(self, size < 0 ? 0 : static_cast<size_t>(size));
  path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  path += "/../cli/sonde";
  return access(path.c_str(), X_OK) == 0 ? path : SONDE_COMMAND_PATH;
}

std::string HowItEnded(int status) {
  return WIFSIGNALED(status) ? fmt::format("sonde join was killed by signal {}", WTERMSIG(status))
                             : fmt::format("sonde join ended with code {}", WEXITSTATUS(status));
}

}  // namespace

Joiner::~Joiner() {
  for (const auto& [url, child] : children_) {
    loop_.Unwatch(child->pidfd.get());
    loop_.Unwatch(child->report.get());
    kill(child->pid, SIGTERM);
  }
}

void Joiner::Start(std::string_view text) {
  const Result<web::ScrapeTarget> target = web::DecodeScrape(text);
  if (!target.ok()) return log::Warning("from the head: {}", target.status().message());
  const std::string url = target->Url();
  if (const auto known = children_.find(url); known != children_.end()) {
    Child& running = *known->second;
    if (running.stopped) {
      running.next = text;
    } else if (running.told) {
      owner_.OnJoined(running.last);
    }
    return;
  }
  auto child = std::make_unique<Child>();
  child->last.target = text;
  child->last.url = url;
  const Status status =
      children_.size() < kMaxTargets
          ? Spawn(*target, *child)
          : Status(Code::kLimit, fmt::format("{} exporters are scraped already", children_.size()));
  if (!status.ok()) {
    child->last.state = JoinedMessage::kFailed;
    child->last.why = status.message().substr(0, kMaxWhy);
    return owner_.OnJoined(child->last);
  }
  children_.emplace(url, std::move(child));
}

void Joiner::Stop(std::string_view text) {
  const Result<web::ScrapeTarget> target = web::DecodeScrape(text);
  if (!target.ok()) return log::Warning("from the head: {}", target.status().message());
  const auto found = children_.find(target->Url());
  if (found == children_.end()) return;
  found->second->stopped = true;
  found->second->next.clear();
  kill(found->second->pid, SIGTERM);
}

void Joiner::TellAll() {
  for (const auto& [url, child] : children_) {
    if (child->told && !child->stopped) owner_.OnJoined(child->last);
  }
}

Status Joiner::Spawn(const web::ScrapeTarget& target, Child& child) {
  const std::string path = command_.empty() ? CommandPath() : command_;
  const std::string url = target.Url();
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return SystemError("make a pipe for " + path);
  child.report = UniqueFd(ends[0]);
  const UniqueFd theirs(ends[1]);
  ChildProgram program;
  program.program = path;
  program.arguments = {"sonde",
                       "join",
                       "--foreground",
                       "--wait=0",
                       fmt::format("--every={}ms", target.every / kMillisecond),
                       "--",
                       url};
  program.environment = {"SONDE_SOCKET=" + socket_, fmt::format("SONDE_LEVEL={}", level_),
                         fmt::format("SONDE_JOIN_REPORT={}", kReportFd)};
  if (recorded_.contains(url)) program.environment.emplace_back("SONDE_JOIN_AGAIN=1");
  for (const char* name : {"PATH", "HOME", "SLURM_JOB_ID", "SLURM_STEP_ID"}) {
    if (const char* value = std::getenv(name)) {
      program.environment.push_back(fmt::format("{}={}", name, value));
    }
  }
  program.descriptors = {{theirs.get(), kReportFd}};
  const Result<pid_t> started = StartChild(program);
  if (!started.ok()) return started.status();
  child.pid = *started;
  child.pidfd = UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, child.pid, 0)));
  Status watched =
      child.pidfd ? loop_.Watch(child.pidfd.get(), EPOLLIN, [this, url](uint32_t) { OnExit(url); })
                  : SystemError("watch " + path);
  if (watched.ok()) {
    watched = loop_.Watch(child.report.get(), EPOLLIN, [this, url](uint32_t) { OnReport(url); });
    if (!watched.ok()) loop_.Unwatch(child.pidfd.get());
  }
  if (!watched.ok()) kill(child.pid, SIGTERM);
  log::Debug("scraping {} by process {}", url, child.pid);
  return watched;
}

void Joiner::OnReport(const std::string& url) { ReadReport(*children_.at(url)); }

void Joiner::ReadReport(Child& child) {
  char buffer[kMaxLine];
  ssize_t size;
  while ((size = read(child.report.get(), buffer, sizeof buffer)) > 0) {
    child.unread.append(buffer, static_cast<size_t>(size));
    for (size_t end; (end = child.unread.find('\n')) != std::string::npos;) {
      OnLine(child, std::string_view(child.unread).substr(0, end));
      child.unread.erase(0, end + 1);
    }
    if (child.unread.size() > kMaxLine) child.unread.clear();
  }
  if (size == 0) loop_.Unwatch(child.report.get());  // it ends
}

// "up KIND URL" or "down WHY".
void Joiner::OnLine(Child& child, std::string_view line) {
  if (child.stopped) return;  // how it was does not count any more
  JoinedMessage& last = child.last;
  const size_t blank = line.find(' ');
  const std::string_view word = line.substr(0, blank);
  const std::string_view rest =
      blank == std::string_view::npos ? std::string_view() : line.substr(blank + 1);
  if (word == "up") {
    const size_t second = std::min(rest.find(' '), rest.size());
    last.state = JoinedMessage::kUp;
    last.kind = rest.substr(0, second);
    last.url = rest.substr(std::min(second + 1, rest.size()));
    last.why.clear();
    child.recorded = true;
  } else if (word == "down") {
    last.state = JoinedMessage::kDown;
    last.why = rest.substr(0, kMaxWhy);
    if (!child.recorded) return;  // it ends now, and then it is told
  } else {
    return;
  }
  child.told = true;
  owner_.OnJoined(last);
}

void Joiner::OnExit(const std::string& url) {
  const auto found = children_.find(url);
  const std::unique_ptr<Child> child = std::move(found->second);
  ReadReport(*child);
  loop_.Unwatch(child->pidfd.get());
  loop_.Unwatch(child->report.get());
  children_.erase(found);
  int status = 0;
  waitpid(child->pid, &status, 0);
  if (child->recorded && recorded_.size() < kMostRecorded) recorded_.insert(url);
  if (!child->next.empty()) return Start(child->next);
  child->last.state = child->stopped ? JoinedMessage::kGone : JoinedMessage::kFailed;
  if (!child->stopped && (child->recorded || child->last.why.empty())) {
    child->last.why = HowItEnded(status);
  }
  owner_.OnJoined(child->last);
  if (child->recorded && !child->stopped && status != 0) {
    owner_.Note(fmt::format(
        "exporter {} is not recorded any more: {}; its messages are in the daemon's log", url,
        child->last.why));
  }
}

}  // namespace sonde::node
