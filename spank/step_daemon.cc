#include "spank/step_daemon.h"

#include <unistd.h>

#include <climits>
#include <utility>

#include "launcher/user_socket.h"
#include "spank/slurm_spank.h"

namespace sonde::spank {
namespace {

std::string LinkTo(const char* path) {
  char target[PATH_MAX];
  const ssize_t size = ::readlink(path, target, sizeof(target));
  return std::string(target, size < 0 ? 0 : static_cast<size_t>(size));
}

// Whether children of this process have the same process numbers as it has: otherwise the tasks'
// numbers would mean nothing to the daemon.
bool ChildrenShareNumbers() {
  const std::string own = LinkTo("/proc/self/ns/pid");
  // If nothing can be read, /proc is not this process's own.
  return !own.empty() && LinkTo("/proc/self/ns/pid_for_children") == own;
}

}  // namespace

Status StepDaemon::Prepare(launch::Process process, launch::Credentials user, std::string message,
                           const Memory& memory) {
  Result<launch::Ends> ends = launch::MakeEnds();
  if (!ends.ok()) return ends.status();
  process_ = std::move(process);
  user_ = std::move(user);
  message_ = std::move(message);
  memory_ = memory;
  if (memory.allowance != 0) job_memory_.Find();
  ends_ = std::move(*ends);
  return {};
}

Status StepDaemon::StartNow() {
  if (!ChildrenShareNumbers()) {
    // Slurm has just set the job's limit anew, and other steps may have daemons.
    job_memory_.KeepRoom(memory_.given);
    return {Code::kUnavailable,
            "start sonded: SlurmdParameters=contain_spank gave it the job's namespace of process "
            "numbers, in which it would not find the tasks"};
  }
  job_memory_.MakeRoom(memory_.allowance, memory_.given);
  process_.become = &user_;
  const Result<launch::ProcessId> process = launch::Start(process_, ends_);
  if (!process.ok()) return process.status();
  id_ = *process;
  started_ = true;
  return ends_.lifeline.Send(message_);
}

Status StepDaemon::Start(bool contained) {
  if (started_ || stopped_ || !prepared()) return {};
  // With control groups of version 1 slurmstepd enters the step's group after Prepare.
  if (!contained && memory_.allowance != 0) job_memory_.Find();
  Status status = StartNow();
  if (!started_) stopped_ = true;
  if (contained) return status;
  ends_.daemon.Reset();
  ends_.stderr_end.Reset();
  return status;
}

void StepDaemon::Tell(const launch::Writer& message, std::span<const int> fds) {
  if (!started_) return;
  const Status status = ends_.lifeline.Send(message.packet(), fds);
  if (status.ok() || std::exchange(drop_noted_, true)) return;
  slurm_debug("sonde: the daemon was not told of a task: %s",
              std::string(status.message()).c_str());
}

void StepDaemon::TellFromTask(const launch::Writer& message) {
  const Status status = ends_.lifeline.Send(message.packet());
  if (!status.ok()) {
    slurm_debug("sonde: the daemon was not told of the fabric: %s",
                std::string(status.message()).c_str());
  }
}

void StepDaemon::Take(std::string_view packet) { last_words_.Take(packet); }

bool StepDaemon::Gone() const {
  return launch::WaitForEnd(id_, launch::Deadline(std::chrono::milliseconds(0)));
}

std::optional<launch::Failure> StepDaemon::TakeFailure() {
  if (!started_ || judged_ || !Gone()) return std::nullopt;
  judged_ = true;
  last_words_.ReadAll(ends_.lifeline, ends_.errors.get());
  return last_words_.Judge(asked_);
}

bool StepDaemon::Stop() {
  if (!started_ || std::exchange(stopped_, true)) return true;
  asked_ = !Gone();
  ends_.lifeline.Finish();
  // Slurm cannot remove a cgroup that a process is still leaving, and leaves it for good.
  const bool in_time = launch::WaitForEnd(id_, launch::Deadline(kStop));
  if (!in_time) {
    launch::KillSession(id_);
    judged_ = true;
    launch::WaitForEnd(id_, launch::Deadline(kKilled));
  }
  last_words_.ReadAll(ends_.lifeline, ends_.errors.get());
  const bool orderly = in_time && last_words_.orderly();
  KillLeft(orderly);
  if (!orderly) launch::RemoveLeftFile(process_.proxy, kKilled);
  return in_time;
}

// What is left in slurmstepd's control group drains the node, so it is looked for whatever a
// daemon says, which its user may have changed. But not every slurmstepd has a control group of its
// own, and to look at all processes of the node takes time.
void StepDaemon::KillLeft(bool orderly) const {
  const bool grouped = launch::KillLeftInGroup(id_, user_.uid, launch::Deadline(kKilled));
  if (!grouped && !orderly) launch::KillOrphans(id_, user_.uid, launch::Deadline(kOrphans));
}

void StepDaemon::Close() {
  ends_.lifeline.End();
  launch::EndAndLeaveOpen(ends_.errors);
  ends_ = launch::Ends();
  job_memory_ = launch::JobMemory();
}

}  // namespace sonde::spank
