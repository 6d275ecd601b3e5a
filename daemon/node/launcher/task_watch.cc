#include "daemon/node/launcher/task_watch.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "core/log.h"
#include "daemon/node/launcher/small_file.h"
#include "launcher/cgroup_path.h"

namespace sonde::node {

int TaskWatch::OpenPidfd(pid_t pid) {
#ifdef SYS_pidfd_open
  return static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
#else
  static_cast<void>(pid);
  errno = ENOSYS;
  return -1;
#endif
}

TaskWatch::TaskWatch(Loop& loop, Options options, std::function<void()> gone)
    : loop_(loop),
      options_(std::move(options)),
      gone_(std::move(gone)),
      own_cgroup_(CgroupOf(getpid())) {
  if (const auto stat = StatOf(getpid()); stat) own_start_ = stat->start;
}

TaskWatch::~TaskWatch() { Stop(); }

void TaskWatch::Stop() {
  loop_.Cancel(std::exchange(timer_, 0));
  if (watched_) loop_.Unwatch(watched_.get());
  watched_.Reset();
  tasks_.clear();
}

std::string TaskWatch::CgroupOf(pid_t pid) const {
  const std::string text = ReadSmall(options_.proc + "/" + std::to_string(pid) + "/cgroup");
  return std::string(launch::CgroupPath(text, ""));
}

void TaskWatch::Add(uint32_t rank, pid_t pid) {
  Task task{.pid = pid, .cgroup = CgroupOf(pid)};
  if (const auto stat = StatOf(pid); stat) task.start = stat->start;
  // A group that the task shares with us tells nothing of the task.
  if (task.cgroup == own_cgroup_) task.cgroup.clear();
  tasks_[rank] = std::move(task);
  if (!watched_) WatchNext();
}

void TaskWatch::Ended(uint32_t rank) {
  if (tasks_.erase(rank) == 0) return;
  if (watched_ && watched_rank_ != rank) return;
  WatchNext();
}

bool TaskWatch::InUse(const Task& task) const {
  if (task.cgroup.empty()) return false;
  const std::string events = ReadSmall(options_.cgroups + task.cgroup + "/cgroup.events");
  return events.find("populated 1") != std::string::npos;
}

std::optional<collect::TaskStat> TaskWatch::StatOf(pid_t pid) const {
  collect::TaskStat stat;
  const std::string text = ReadSmall(options_.proc + "/" + std::to_string(pid) + "/stat");
  return collect::ParseTaskStat(text, stat) ? std::optional(stat) : std::nullopt;
}

bool TaskWatch::IsZombie(const Task& task) const {
  const auto stat = StatOf(task.pid);
  return stat && stat->state == 'Z';
}

// True for slurmstepd, this daemon and what it has started, processes that were there before it
// (plugins have started them for the step), and processes that have ended.
bool TaskWatch::IsExpected(pid_t pid) const {
  constexpr int kGenerations = 16;
  for (int i = 0; i < kGenerations && pid > 1; ++i) {
    if (pid == getpid()) return true;
    const auto stat = StatOf(pid);
    if (!stat || stat->state == 'Z') return i == 0;
    const bool launcher = std::string_view(stat->name.data()) == "slurmstepd";
    if (i == 0 && (launcher || stat->start < own_start_)) return true;
    pid = stat->parent;
  }
  return false;
}

// Whether others run there than slurmstepd, this daemon and what it has started.
std::optional<bool> TaskWatch::EpilogRuns() const {
  if (own_cgroup_.find("/step_") == std::string::npos || !own_cgroup_.ends_with("/slurm")) {
    return std::nullopt;
  }
  const std::string pids = ReadSmall(options_.cgroups + own_cgroup_ + "/cgroup.procs");
  if (pids.empty()) return std::nullopt;
  const char* const end = pids.data() + pids.size();
  for (const char* at = pids.data(); at < end; ++at) {
    pid_t pid = 0;
    at = std::from_chars(at, end, pid).ptr;
    if (pid != 0 && !IsExpected(pid)) return true;
  }
  return false;
}

// A process that has taken the task's number over began later. What cannot be read, as when this
// process has too many open files, says nothing: then the number decides.
bool TaskWatch::Lives(Task& task) const {
  const auto stat = StatOf(task.pid);
  if (!stat) return kill(task.pid, 0) == 0 || errno != ESRCH;
  if (task.start == 0) task.start = stat->start;
  return stat->start == task.start && stat->state != 'Z' && stat->state != 'X';
}

bool TaskWatch::Watch(uint32_t rank, Task& task) {
  UniqueFd fd(options_.open(task.pid));
  if (!fd) {
    task.exited = errno == ESRCH;
    return false;
  }
  const Status status = loop_.Watch(fd.get(), EPOLLIN, [this](uint32_t) {
    if (const auto at = tasks_.find(watched_rank_); at != tasks_.end()) at->second.exited = true;
    WatchNext();
  });
  if (!status.ok()) return false;
  watched_ = std::move(fd);
  watched_rank_ = rank;
  return true;
}

void TaskWatch::WatchNext() {
  loop_.Cancel(std::exchange(timer_, 0));
  if (watched_) loop_.Unwatch(watched_.get());
  watched_.Reset();
  for (auto& [rank, task] : tasks_) {
    if (task.exited) continue;
    if (Watch(rank, task)) return;
    task.exited = task.exited || !Lives(task);
    if (task.exited) continue;
    timer_ = loop_.After(options_.look, [this] {
      timer_ = 0;
      WatchNext();
    });
    return;
  }
  if (tasks_.empty()) return;
  gone_since_ = Clock::System().Monotonic();
  timer_ = loop_.After(options_.patience, [this] { OnPatienceOver(); });
}

void TaskWatch::OnPatienceOver() {
  timer_ = 0;
  const Nanos now = Clock::System().Monotonic();
  const bool early = now - gone_since_ < options_.patience_with_epilogs;
  const std::optional<bool> epilog_runs = EpilogRuns();
  if (epilog_runs.value_or(false)) epilog_seen_ = now;
  const bool epilog = epilog_seen_ != 0 && now - epilog_seen_ < options_.patience_after_epilog;
  const auto patient = [&](const auto& entry) {
    const Task& task = entry.second;
    return InUse(task) || (epilog_runs ? epilog : early && !IsZombie(task));
  };
  if (std::any_of(tasks_.begin(), tasks_.end(), patient)) {
    timer_ = loop_.After(options_.interval, [this] { OnPatienceOver(); });
    return;
  }
  log::Warning("the tasks of this node are gone, and their launcher does not say so");
  Stop();
  gone_();
}

}  // namespace sonde::node
