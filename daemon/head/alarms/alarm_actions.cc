#include "daemon/head/alarms/alarm_actions.h"

#include <fmt/core.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>

#include "core/log.h"
#include "daemon/child_process.h"

namespace sonde::head {
namespace {

std::vector<std::string> Words(const std::string& text) {
  std::vector<std::string> words;
  for (size_t at = 0; (at = text.find_first_not_of(" \t", at)) != std::string::npos;) {
    const size_t end = std::min(text.find_first_of(" \t", at), text.size());
    words.push_back(text.substr(at, end - at));
    at = end;
  }
  return words;
}

// A descriptor that reads `text` from its begin.
Result<UniqueFd> ToRead(const std::string& text) {
  UniqueFd fd(memfd_create("sonde-alarm", MFD_CLOEXEC));
  if (!fd) return SystemError("make room for an alarm's text");
  if (write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      lseek(fd.get(), 0, SEEK_SET) != 0) {
    return SystemError("write an alarm's text");
  }
  return fd;
}

// This process's own and, before them all, `variables`.
std::vector<std::string> WithVariables(
    const std::vector<std::pair<std::string, std::string>>& variables) {
  std::vector<std::string> all;
  all.reserve(variables.size());
  for (const auto& [name, value] : variables) all.push_back(name + "=" + value);
  for (char** at = environ; *at != nullptr; ++at) {
    const std::string_view entry = *at;
    const bool replaced = std::any_of(variables.begin(), variables.end(), [&](const auto& one) {
      return entry.starts_with(one.first) && entry.substr(one.first.size()).starts_with('=');
    });
    if (!replaced) all.emplace_back(entry);
  }
  return all;
}

std::string HowItEnded(int status, bool killed) {
  if (killed) return fmt::format("took more than {}", FormatDuration(AlarmActions::kLimit));
  if (WIFSIGNALED(status)) return fmt::format("was killed by signal {}", WTERMSIG(status));
  return fmt::format("ended with code {}", WEXITSTATUS(status));
}

}  // namespace

std::string CurlConfig(const std::string& url, const std::string& json) {
  const auto quoted = [](const std::string& text) {
    std::string out = "\"";
    for (const char c : text) {
      if (c == '"' || c == '\\') out += '\\';
      out += c == '\n' || c == '\r' ? ' ' : c;
    }
    return out + '"';
  };
  return fmt::format(
      "url = {}\ndata-raw = {}\nheader = \"Content-Type: application/json\"\n"
      "proto = \"=http,https\"\nmax-time = 8\noutput = \"/dev/null\"\nsilent\nfail\n",
      quoted(url), quoted(json));
}

AlarmActions::AlarmActions(Loop& loop, const std::string& command, std::string webhook,
                           std::function<void(std::string)> note)
    : loop_(loop), command_(Words(command)), webhook_(std::move(webhook)), note_(std::move(note)) {}

AlarmActions::~AlarmActions() {
  for (const auto& [pid, process] : running_) {
    loop_.Cancel(process.limit);
    loop_.Unwatch(process.pidfd.get());
    kill(-pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
}

void AlarmActions::Tell(const Message& message) {
  if (!command_.empty()) Enqueue({false, command_, message.variables, message.json + "\n"});
  if (!webhook_.empty()) {
    Enqueue({true, {"curl", "-q", "--config", "-"}, {}, CurlConfig(webhook_, message.json)});
  }
}

void AlarmActions::Enqueue(Job job) {
  if (runs_ == kMaxRuns || waiting_.size() == kMaxWaiting) {
    if (!std::exchange(told_limit_, true)) {
      note_("alarms were raised too often for the command and the webhook to hear of all");
    }
    return;
  }
  ++runs_;
  waiting_.push_back(std::move(job));
  StartNext();
}

void AlarmActions::StartNext() {
  while (!waiting_.empty() && running_.size() < kMaxProcesses) {
    const Job job = std::move(waiting_.front());
    waiting_.pop_front();
    if (const Status status = Spawn(job); !status.ok()) {
      Failed(job.webhook, std::string(status.message()));
    }
  }
}

Status AlarmActions::Spawn(const Job& job) {
  const Result<UniqueFd> input = ToRead(job.input);
  if (!input.ok()) return input.status();
  ChildProgram child;
  child.program = job.arguments.front();
  child.arguments = job.arguments;
  child.environment = WithVariables(job.variables);
  child.descriptors = {{input->get(), STDIN_FILENO}};
  child.silent = child.default_signals = true;
  // So that it is killed with what it has started.
  child.own_group = true;
  const Result<pid_t> started = StartChild(child);
  if (!started.ok()) return started.status();
  const pid_t pid = *started;
  Process process;
  process.webhook = job.webhook;
  process.pidfd.Reset(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  Status watched = process.pidfd ? Status() : SystemError("watch " + job.arguments.front());
  if (watched.ok()) {
    watched = loop_.Watch(process.pidfd.get(), EPOLLIN, [this, pid](uint32_t) { OnExit(pid); });
  }
  if (!watched.ok()) {
    kill(-pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    return watched;
  }
  process.limit = loop_.After(kLimit, [this, pid] {
    running_[pid].killed = true;
    kill(-pid, SIGKILL);
  });
  running_.emplace(pid, std::move(process));
  return {};
}

void AlarmActions::OnExit(pid_t pid) {
  const auto at = running_.find(pid);
  const Process process = std::move(at->second);
  running_.erase(at);
  loop_.Cancel(process.limit);
  loop_.Unwatch(process.pidfd.get());
  int status = 0;
  waitpid(pid, &status, 0);
  if (status != 0) Failed(process.webhook, HowItEnded(status, process.killed));
  StartNext();
}

void AlarmActions::Failed(bool webhook, const std::string& why) {
  note_(webhook ? fmt::format("the webhook for alarms failed: curl {}", why)
                : fmt::format("the command for alarms, {}, failed: {}", command_.front(), why));
}

}  // namespace sonde::head
