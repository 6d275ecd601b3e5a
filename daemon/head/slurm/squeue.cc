#include "daemon/head/slurm/squeue.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <utility>
#include <vector>

#include "daemon/child_process.h"

namespace sonde::head {
namespace {

constexpr size_t kMaxOutput = size_t{4} << 20;  // of a job array with many jobs

// Ours, with times in UTC in the form that Slurm gives them if nobody asks for another.
std::vector<std::string> Environment() {
  std::vector<std::string> all = ChildProgram::CurrentEnvironment();
  std::erase_if(all, [](const std::string& entry) {
    return entry.starts_with("TZ=") || entry.starts_with("SLURM_TIME_FORMAT=") ||
           entry.starts_with("SQUEUE_");
  });
  all.emplace_back("TZ=UTC");
  return all;
}

std::string ReadAll(int fd) {
  std::string text;
  char part[8192];
  ssize_t got = 0;
  while (text.size() < kMaxOutput &&
         (got = pread(fd, part, sizeof(part), static_cast<off_t>(text.size()))) > 0) {
    text.append(part, static_cast<size_t>(got));
  }
  return text;
}

}  // namespace

void Squeue::Ask(std::string job, Nanos limit, Done done) {
  Kill();
  job_ = std::move(job);
  done_ = std::move(done);
  if (Status started = Start(); !started.ok()) {
    Kill();
    timer_ = loop_.After(0, [this, started = std::move(started)] { Finish(started); });
    return;
  }
  timer_ = loop_.After(limit, [this, limit] {
    Finish(Status(Code::kTimeout, fmt::format("squeue took more than {}", FormatDuration(limit))));
  });
}

Status Squeue::Start() {
  output_.Reset(memfd_create("sonde-squeue", MFD_CLOEXEC));
  const UniqueFd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!output_ || !null) return SystemError("make room for squeue's output");
  ChildProgram child;
  child.program = "squeue";
  child.arguments = SqueueArguments(job_);
  child.environment = Environment();
  child.descriptors = {
      {null.get(), STDIN_FILENO}, {output_.get(), STDOUT_FILENO}, {null.get(), STDERR_FILENO}};
  child.own_group = child.default_signals = true;
  const Result<pid_t> pid = StartChild(child);
  if (!pid.ok()) return pid.status();
  pid_ = *pid;
  pidfd_.Reset(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
  if (!pidfd_) return SystemError("watch squeue");
  return loop_.Watch(pidfd_.get(), EPOLLIN, [this](uint32_t) { OnExit(); });
}

void Squeue::OnExit() {
  int status = 0;
  waitpid(std::exchange(pid_, 0), &status, 0);
  if (status == 0) return Finish(ParseListing(ReadAll(output_.get()), job_));
  Finish(Status(Code::kUnavailable, fmt::format("squeue ended with status {}", status)));
}

void Squeue::Finish(Result<JobNow> now) {
  Kill();
  // It may ask again, or be the end of this.
  const Done done = std::move(done_);
  done(std::move(now));
}

void Squeue::Kill() {
  loop_.Cancel(std::exchange(timer_, 0));
  if (pidfd_) loop_.Unwatch(pidfd_.get());
  pidfd_.Reset();
  // What the kernel does not let go yet is waited for when the daemon ends (EndChildren).
  if (pid_ != 0) {
    kill(-pid_, SIGKILL);
    waitpid(std::exchange(pid_, 0), nullptr, WNOHANG);
  }
  output_.Reset();
}

}  // namespace sonde::head
