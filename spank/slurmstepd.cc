// slurmstepd: prepares a daemon on the node, starts it as the job's user with the first task, tells
// it of every task and hands it their perf events, and has it finish when the last task of the node
// ends.
#include "spank/slurmstepd.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <ctime>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "launcher/process_id.h"
#include "launcher/site/job_memory.h"
#include "launcher/site/site_policy.h"
#include "spank/describe.h"
#include "spank/job_items.h"
#include "spank/node_launch.h"
#include "spank/plugin.h"
#include "spank/site_grant.h"
#include "spank/task_environment.h"

namespace sonde::spank {
namespace {

namespace key = launch::key;

launch::StepKind KindOf(uint32_t step) {
  if (step == SLURM_BATCH_SCRIPT) return launch::StepKind::kBatch;
  if (step == SLURM_INTERACTIVE_STEP) return launch::StepKind::kInteractive;
  return launch::StepKind::kOther;
}

// The task's whole usage. slurmstepd has just waited for this task, and for no other process since
// the last task, so the difference of its children's usage is the task's, exact to the end, while
// the daemon's last look is up to a period old. Not known in a child that runs the callback for
// slurmstepd.
void AddTotals(StepdContext& context, launch::Writer& message) {
  rusage now{};
  if (getpid() != context.stepd || getrusage(RUSAGE_CHILDREN, &now) != 0) return;
  const rusage before = std::exchange(context.children_before, now);
  const auto nanos = [](const timeval& to, const timeval& from) {
    return (to.tv_sec - from.tv_sec) * 1'000'000'000LL + (to.tv_usec - from.tv_usec) * 1'000LL;
  };
  message.Add(key::kUserTime, nanos(now.ru_utime, before.ru_utime));
  message.Add(key::kSystemTime, nanos(now.ru_stime, before.ru_stime));
  message.Add(key::kMinorFaults, now.ru_minflt - before.ru_minflt);
  message.Add(key::kMajorFaults, now.ru_majflt - before.ru_majflt);
  // In units of 512 bytes, whatever the size of a block (task_io_get_inblock() in the kernel):
  // nothing is lost, for storage is read and written in whole sectors.
  message.Add(key::kReadBytes, (now.ru_inblock - before.ru_inblock) * 512LL);
  message.Add(key::kWrittenBytes, (now.ru_oublock - before.ru_oublock) * 512LL);
  // The maximum is that of all children so far: the task's own only if it is the new one.
  if (now.ru_maxrss > before.ru_maxrss) message.Add(key::kMaxRss, now.ru_maxrss * 1024LL);
}

// A start, if no failure.
void Count(const Context& context, std::optional<launch::FailureKind> failure = std::nullopt) {
  const Status counted = context.stepd.counting.Count(failure, ::time(nullptr));
  if (counted.ok()) return;
  slurm_debug("sonde: not counted for this node: %s", std::string(counted.message()).c_str());
}

// With tasks, slurmstepd's errors go to srun's stderr as well, one from every node; messages that
// only interest the administrator go to the log alone. `killed`: so was the task that has ended.
void TellFailure(Context& context, bool killed = false) {
  const std::optional<launch::Failure> failure = context.stepd.step_daemon.TakeFailure();
  if (!failure) return;
  const char* const step = context.stepd.step.c_str();
  // Before 25.05 Slurm kills all that is in the step's control group, as for scancel -s KILL.
  if (killed && failure->kind == launch::FailureKind::kKilled) {
    slurm_debug("sonde: the daemon of step %s was killed with the tasks", step);
    return;
  }
  if (context.stepd.step_daemon.ended_early()) {
    slurm_info(
        "sonde: the daemon of step %s ended early: %s; the step goes on without telemetry on this "
        "node",
        step, failure->reason.c_str());
  } else {
    slurm_info("sonde: the daemon of step %s could not do all of its work: %s", step,
               failure->reason.c_str());
  }
  Count(context, failure->kind);
}

void Stop(Context& context, bool killed = false) {
  if (context.stepd.step_daemon.Stop()) return TellFailure(context, killed);
  slurm_info("sonde: sonded has not finished after %d ms and is killed",
             static_cast<int>(StepDaemon::kStop.count()));
  Count(context, launch::FailureKind::kUnfinished);
}

// With the first task. Where the daemon cannot be started, the tasks' SONDE_SOCKET names a socket
// at which nobody listens, and not that of a daemon around the step.
void Start(Context& context) {
  StepDaemon& daemon = context.stepd.step_daemon;
  const bool begun = daemon.started();
  const Status started = daemon.Start(getpid() != context.stepd.stepd);
  if (!started.ok()) {
    slurm_info("sonde: no telemetry for step %s: %s", context.stepd.step.c_str(),
               std::string(started.message()).c_str());
  }
  if (daemon.started() && !begun) Count(context);
  if (!daemon.started() && !started.ok()) Count(context, launch::FailureKind::kStart);
}

// To the log alone if nobody asked for the step to be watched. Where sonde.conf cannot be read
// either nobody has: that would be a line for every step of everybody.
void ComplainOfStep(const Context& context, uint32_t step, const Status& status) {
  const auto tell = context.options.asked.level  ? &slurm_error
                    : context.config.rules_known ? &slurm_info
                                                 : &slurm_debug;
  tell("sonde: no telemetry for step %s: %s", StepName(step).c_str(),
       std::string(status.message()).c_str());
}

// Slurm has just set the job's memory limit anew for this step, which is not watched.
void KeepRoomForOthers(spank_t spank, StepdContext& context) {
  if (context.step.empty() || std::exchange(context.kept_room, true)) return;
  // With control groups of version 1 slurmstepd enters the step's group after init_post_opt. A
  // child that runs the callback for it may be in namespaces that do not show the group.
  if (getpid() == context.stepd) context.job_memory.Find();
  context.job_memory.KeepRoom(AllocatedMemory(spank));
}

// The step has no daemon on this node.
void LeaveUnwatched(spank_t spank, Context& context) {
  context.stepd.job_memory.Find();
  HideOuterDaemon(spank, context.config);
}

// Slurm's switch plugin puts them into the environment of each task in the task's own process, and
// of all tasks on a node they are the same.
void TellFabricVariables(spank_t spank, StepDaemon& daemon) {
  if (Item<int>(spank, S_TASK_ID) != 0) return;
  launch::Writer message(launch::kVariables);
  JobEnvironment(spank).ForEach([&](std::string_view entry) {
    if (entry.starts_with(launch::kFabricVariable)) message.Add(key::kEnvironment, entry);
  });
  daemon.TellFromTask(message);
}

// What the step gets on this node.
void DecideForNode(spank_t spank, uint32_t step, Context& context) {
  context.config_error = LoadSondeConf(JobEnvironment(spank), context.config);
  if (!context.config.rules_known) return ComplainOfStep(context, step, context.config_error);
  const Status granted = GrantOnNode(spank, context.config, context.options);
  if (!granted.ok()) return ComplainOfStep(context, step, granted);
  for (const std::string& lowered : context.options.lowered) {
    slurm_verbose("sonde: %s", lowered.c_str());
  }
  if (context.options.level == 0 || context.config_error.ok()) return;
  slurm_error("sonde: %s; ignored", std::string(context.config_error.message()).c_str());
}

}  // namespace

void StepdInitPostOpt(spank_t spank, Context& context) {
  context.stepd.stepd = getpid();
  const std::optional<uint32_t> step = Item<uint32_t>(spank, S_JOB_STEPID);
  if (!step || *step == SLURM_EXTERN_CONT) return;
  HideRendezvous(spank);
  // A command for alarms may submit jobs, and they are not to end with its daemon.
  spank_unsetenv(spank, launch::kChildOf);
  if (*step == SLURM_BATCH_SCRIPT) {
    TakeOptionsOfScript(JobEnvironment(spank), context.options, [](const Status& wrong) {
      slurm_info("sonde: %s", std::string(wrong.message()).c_str());
    });
  }
  context.stepd.step =
      std::to_string(Item<uint32_t>(spank, S_JOB_ID).value_or(0)) + "." + StepName(*step);
  // Who asked for nothing may be watched all the same; who asked for level 0 never is.
  if (context.options.asked.level != 0) DecideForNode(spank, *step, context);
  std::optional<Rendezvous> rendezvous = ParseRendezvous(context.options.rendezvous);
  const std::string_view role = launch::RoleOf(KindOf(*step), context.options.level,
                                               context.config.policy, rendezvous.has_value());
  if (role.empty()) return LeaveUnwatched(spank, context);
  if (rendezvous) {
    Result<std::string> key = OpenKey(rendezvous->key, launch::Environment(environ));
    if (!key.ok()) {
      ComplainOfStep(context, *step, key.status());
      return LeaveUnwatched(spank, context);
    }
    rendezvous->key = std::move(*key);
  }
  const NodeFacts facts = LookAtNode(spank, context.config, context.options.level);
  context.stepd.alone = facts.alone;
  // Count tells what is wrong.
  static_cast<void>(context.stepd.counting.Open(context.config.state, facts.name));
  const Status status = PrepareDaemon(spank, context.config, context.options, *step, role,
                                      rendezvous, facts, context.stepd.step_daemon);
  if (status.ok()) return;
  ComplainOfStep(context, *step, status);
  Count(context, launch::FailureKind::kStart);
  LeaveUnwatched(spank, context);
}

// In the process of the task, made when the daemon was prepared and not yet started. The daemon has
// been started meanwhile: tasks wait until all of them were seen (StepdTaskPostFork).
void StepdTaskInit(spank_t spank, Context& context) {
  if (!context.stepd.step_daemon.prepared()) return;
  TellFabricVariables(spank, context.stepd.step_daemon);
  PreloadInTask(spank, context.config, context.options);
  ShowProxyInTask(spank, context.stepd.step_daemon.proxy());
}

void StepdTaskPostFork(spank_t spank, Context& context) {
  if (!context.stepd.step_daemon.prepared()) return KeepRoomForOthers(spank, context.stepd);
  Start(context);
  if (!context.stepd.step_daemon.started()) return;
  TellFailure(context);
  const std::optional<pid_t> pid = Item<pid_t>(spank, S_TASK_PID);
  const std::optional<uint32_t> rank = Item<uint32_t>(spank, S_TASK_GLOBAL_ID);
  if (!pid || !rank) return;
  // Tasks start together: the usage of processes that slurmstepd waited for before is not theirs.
  getrusage(RUSAGE_CHILDREN, &context.stepd.children_before);
  launch::Writer message(launch::kTask);
  message.Add(key::kRank, *rank);
  message.Add(key::kLocal, Item<int>(spank, S_TASK_ID).value_or(0));
  message.Add(key::kPid, *pid);
  if (context.options.level >= 3) {
    context.stepd.counters.Prepare(context.config, context.stepd.alone, context.stepd.step_daemon);
  }
  const launch::TaskEvents opened = context.stepd.counters.Open(*pid, message);
  std::vector<int> fds;
  for (const UniqueFd& fd : opened.fds) fds.push_back(fd.get());
  context.stepd.step_daemon.Tell(message, fds);
}

void StepdTaskExit(spank_t spank, Context& context) {
  if (!context.stepd.step_daemon.started()) return;
  const int status = Item<int>(spank, S_TASK_EXIT_STATUS).value_or(0);
  const bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  TellFailure(context, killed);
  launch::Writer message(launch::kTaskExit);
  message.Add(key::kRank, Item<uint32_t>(spank, S_TASK_GLOBAL_ID).value_or(0));
  message.Add(key::kStatus, status);
  AddTotals(context.stepd, message);
  context.stepd.step_daemon.Tell(message);
  // Slurm kills what is left of the step before slurm_spank_exit, so the daemon must finish here.
  const uint32_t tasks = Item<uint32_t>(spank, S_JOB_LOCAL_TASK_COUNT).value_or(1);
  if (++context.stepd.tasks_ended >= tasks) Stop(context, killed);
}

void StepdExit(Context& context) {
  Stop(context);
  context.stepd.step_daemon.Close();
  context.stepd.job_memory = launch::JobMemory();
  context.stepd.counting.Close();
}

// Otherwise the destructors would close the lifeline.
void StepdUnload(Context& context) {
  if (context.stepd.stepd == getpid()) context.stepd.step_daemon.Close();
}

}  // namespace sonde::spank
