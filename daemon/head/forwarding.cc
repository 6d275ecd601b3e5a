#include "daemon/head/forwarding.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <utility>

#include "daemon/child_process.h"
#include "forward/job.h"
#include "profiles/records/keys.h"

namespace sonde::head {

Forwarding::Forwarding(Loop& loop, std::string config_path, const Config& config,
                       std::string archive, JobDescription job, bool may_stay,
                       std::function<void(std::string)> note)
    : loop_(loop),
      config_path_(std::move(config_path)),
      archive_(std::move(archive)),
      job_(std::move(job)),
      may_stay_(may_stay),
      note_(std::move(note)) {
  Status wrong;
  const bool any = !forward::ConfiguredDestinations(config, wrong).empty();
  if (!wrong.ok()) note_(fmt::format("not forwarded as configured: {}", wrong.message()));
  if (any) timer_ = loop_.After(kStartAfter, [this] { Start(); });
}

Forwarding::~Forwarding() {
  End();
  if (pidfd_) loop_.Unwatch(pidfd_.get());
}

void Forwarding::Start() {
  loop_.Cancel(std::exchange(timer_, 0));
  const Status started = Spawn();
  if (!started.ok()) note_(fmt::format("not forwarded: {}", started.message()));
}

Status Forwarding::Spawn() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return SystemError("make a pipe");
  const UniqueFd theirs(ends[0]);
  UniqueFd ours(ends[1]);
  ChildProgram follower;
  follower.program = "/proc/self/exe";
  follower.arguments = {"sonded-head", "--forward", config_path_, archive_, keys::ProfileKey(job_)};
  follower.descriptors = {{theirs.get(), STDIN_FILENO}};
  follower.silent = follower.default_signals = true;
  follower.may_outlive_us = may_stay_;
  const Result<pid_t> pid = StartChild(follower);
  if (!pid.ok()) return pid.status();
  pid_ = *pid;
  pipe_ = std::move(ours);
  pidfd_.Reset(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
  if (!pidfd_) return {};
  return loop_.Watch(pidfd_.get(), EPOLLIN, [this](uint32_t) { OnExit(); });
}

void Forwarding::OnExit() {
  loop_.Unwatch(pidfd_.get());
  pidfd_.Reset();
  waitpid(pid_, nullptr, WNOHANG);
}

void Forwarding::End() {
  if (timer_ != 0 && may_stay_) Start();
  loop_.Cancel(std::exchange(timer_, 0));
  pipe_.Reset();
}

}  // namespace sonde::head
