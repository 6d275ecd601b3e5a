#include "daemon/node/standby.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <utility>

#include "core/launch.h"
#include "daemon/tree/address.h"

namespace sonde::node {
namespace {

constexpr int kBacklog = 1024;

Result<UniqueFd> ListenAt(const std::string& host, uint16_t port) {
  const auto address = tree::Resolve(host, port, true);
  if (!address.ok()) return address.status();
  if (address->empty()) return Status(Code::kNotFound, "no address");
  const tree::Address& at = address->front();
  UniqueFd fd(socket(at.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return SystemError("create a socket");
  if (bind(fd.get(), at.get(), at.length) != 0 || listen(fd.get(), kBacklog) != 0) {
    return SystemError(fmt::format("listen at {}", tree::HostPortText(host, port)));
  }
  return fd;
}

// sonded-head lies beside sonded.
std::string HeadProgram() {
  std::array<char, PATH_MAX> own{};
  if (readlink("/proc/self/exe", own.data(), own.size() - 1) < 0) return "";
  return std::string(own.data()) + "-head";
}

// The descriptors as its launcher gives them to a head. Out of the way of these numbers first.
Result<pid_t> Spawn(const std::string& program, const std::string& step, int lifeline,
                    int listener) {
  const UniqueFd high_lifeline(fcntl(lifeline, F_DUPFD_CLOEXEC, 16));
  const UniqueFd high_listener(fcntl(listener, F_DUPFD_CLOEXEC, 16));
  if (!high_lifeline || !high_listener) return SystemError("duplicate descriptors");
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_adddup2(&actions, high_lifeline.get(), launch::kLifelineFd);
  posix_spawn_file_actions_adddup2(&actions, high_listener.get(), launch::kListenFd);
  posix_spawn_file_actions_addclosefrom_np(&actions, launch::kListenFd + 1);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
  std::string path = program;
  std::string role = "--head";
  std::string name = step;
  char* const argv[] = {path.data(), role.data(), name.data(), nullptr};
  pid_t pid = 0;
  const int error = posix_spawn(&pid, path.c_str(), &actions, &attributes, argv, environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return SystemError("start " + program, error);
  return pid;
}

}  // namespace

Standby::~Standby() {
  if (pidfd_) loop_.Unwatch(pidfd_.get());
}

Result<uint16_t> Standby::Listen(const std::string& host) {
  if (listener_) return port_;
  const auto [low, high] = tree::PortsOf(ports_);
  Status failed;
  for (uint32_t port = low; port <= high; ++port) {
    Result<UniqueFd> listener = ListenAt(host, static_cast<uint16_t>(port));
    if (listener.ok()) {
      listener_ = *std::move(listener);
      port_ = tree::PortOf(tree::LocalAddress(listener_.get()));
      return port_;
    }
    failed = listener.status();
  }
  return failed;
}

Status Standby::Act(Nanos start) {
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
      fmt::format("\n{}=head\n{}={}\n", launch::key::kRole, launch::key::kStart, start);
  if (send(lifeline_.get(), packet.data(), packet.size(), MSG_NOSIGNAL) < 0) {
    return SystemError("send the launch message");
  }
  if (pidfd_) OnExit();
  const Result<pid_t> pid =
      Spawn(HeadProgram(), launch_.job.id.ToString(), theirs.get(), listener.get());
  return pid.ok() ? Watch(*pid) : pid.status();
}

// So that it leaves nothing behind when it ends before this process.
Status Standby::Watch(pid_t pid) {
  pid_ = pid;
  pidfd_ = UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd_) return {};
  return loop_.Watch(pidfd_.get(), EPOLLIN, [this](uint32_t) { OnExit(); });
}

void Standby::OnExit() {
  loop_.Unwatch(pidfd_.get());
  pidfd_.Reset();
  waitpid(pid_, nullptr, WNOHANG);
}

}  // namespace sonde::node
