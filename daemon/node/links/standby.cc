#include "daemon/node/links/standby.h"

#include <fmt/core.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <utility>

#include "core/log.h"
#include "daemon/child_process.h"
#include "daemon/link/address.h"
#include "daemon/link/listener.h"
#include "daemon/message/places.h"
#include "launcher/launch.h"

namespace sonde::node {

Standby::~Standby() {
  for (const auto& [pid, pidfd] : heads_) loop_.Unwatch(pidfd.get());
  loop_.Cancel(timer_);
}

Result<uint16_t> Standby::Listen(const std::string& host) {
  if (listener_) return port_;
  Result<UniqueFd> listener = tree::ListenAt(host, tree::PortsOf(ports_));
  if (!listener.ok()) return listener.status();
  listener_ = *std::move(listener);
  return port_ = tree::PortOf(tree::LocalAddress(listener_.get()));
}

Status Standby::Act(Nanos start, Nanos ahead, uint32_t place,
                    const std::vector<tree::Place>& before) {
  if (!listener_) return {Code::kInvalid, "be acting head: nothing listens"};
  const UniqueFd listener = std::move(listener_);
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return SystemError("make a lifeline");
  }
  lifeline_ = UniqueFd(ends[0]);
  const UniqueFd theirs(ends[1]);
  // Later lines win.
  const std::string packet =
      std::string(1, launch::kLaunch) + launch_.text +
      fmt::format("\n{}=head\n{}={}\n{}={}\n{}={}\n", launch::key::kRole, launch::key::kStart,
                  start, launch::key::kAhead, ahead, launch::key::kPlace, place) +
      fmt::format("{}={}\n", launch::key::kBefore, tree::ToText(before));
  if (send(lifeline_.get(), packet.data(), packet.size(), MSG_NOSIGNAL) < 0) {
    return SystemError("send the launch message");
  }
  Kill();
  ChildProgram head;
  head.program = program_.held();
  head.arguments = {program_.path(), "--head", launch_.job.id.ToString()};
  // With the numbers that a head's launcher gives them.
  head.descriptors = {{theirs.get(), launch::kLifelineFd}, {listener.get(), launch::kListenFd}};
  Result<pid_t> pid = StartChild(head);
  if (!pid.ok() && program_.held() != program_.path()) {
    head.program = program_.path();
    pid = StartChild(head);
  }
  if (pid.ok()) Watch(*pid);
  return pid.status();
}

// So that it leaves nothing behind when it ends before this process.
void Standby::Watch(pid_t pid) {
  UniqueFd pidfd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd) return;
  const Status watched = loop_.Watch(pidfd.get(), EPOLLIN, [this, pid](uint32_t) { OnExit(pid); });
  if (watched.ok()) heads_.emplace(pid, std::move(pidfd));
}

void Standby::OnExit(pid_t pid) {
  const auto head = heads_.find(pid);
  loop_.Unwatch(head->second.get());
  heads_.erase(head);
  waitpid(pid, nullptr, WNOHANG);
  if (!heads_.empty()) return;
  loop_.Cancel(std::exchange(timer_, 0));
  if (left_) std::exchange(left_, nullptr)();
}

void Standby::Kill() const {
  for (const auto& [pid, pidfd] : heads_) kill(pid, SIGKILL);
}

void Standby::Leave(Nanos deadline, std::function<void()> left) {
  listener_.Reset();
  if (heads_.empty()) return left();
  left_ = std::move(left);
  shutdown(lifeline_.get(), SHUT_WR);
  timer_ = loop_.At(deadline, [this] {
    timer_ = 0;
    log::Warning("the acting head has not finished in time and is killed");
    Kill();
  });
}

}  // namespace sonde::node
