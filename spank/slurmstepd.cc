// slurmstepd: prepares a daemon on the node, starts it as the job's user with the first task, tells
// it of every task and hands it their perf events, and has it finish when the last task of the node
// ends.

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/preload.h"
#include "spank/describe.h"
#include "spank/machine_open.h"
#include "spank/perf_open.h"
#include "spank/plugin.h"
#include "spank/random.h"
#include "spank/step_gpus.h"

namespace sonde::spank {
namespace {

namespace key = launch::key;

Environment JobEnvironment(spank_t spank) {
  char** variables = nullptr;
  if (spank_get_item(spank, S_JOB_ENV, &variables) != ESPANK_SUCCESS) return {};
  return Environment(variables);
}

// What the daemon of this step is to be; "": there is none.
std::string_view ChooseRole(uint32_t step, const Context& context,
                            const std::optional<Rendezvous>& rendezvous) {
  if (context.options.level == 0) return "";
  if (step == SLURM_BATCH_SCRIPT) return context.config.monitor_batch ? "solo" : "";
  if (step == SLURM_INTERACTIVE_STEP) return context.config.monitor_interactive ? "solo" : "";
  // Without a rendezvous there is no head: srun could not start one, or lacks the plugin.
  return context.config.monitor_steps && rendezvous ? "node" : "";
}

std::string NodeName() {
  const char* name = std::getenv("SLURMD_NODENAME");
  if (name != nullptr) return name;
  char host[256] = "";
  ::gethostname(host, sizeof(host) - 1);
  return host;
}

Result<Credentials> JobCredentials(spank_t spank) {
  const std::optional<uid_t> uid = Item<uid_t>(spank, S_JOB_UID);
  const std::optional<gid_t> gid = Item<gid_t>(spank, S_JOB_GID);
  gid_t* groups = nullptr;
  int count = 0;
  if (!uid || !gid ||
      spank_get_item(spank, S_JOB_SUPPLEMENTARY_GIDS, &groups, &count) != ESPANK_SUCCESS) {
    return Status(Code::kInternal, "Slurm does not tell the job's user and groups");
  }
  return Credentials{*uid, *gid, std::vector<gid_t>(groups, groups + std::max(count, 0))};
}

// Whether nobody else has a job on the node.
bool IsAlone(spank_t spank) {
  char* cores = nullptr;
  if (spank_get_item(spank, S_JOB_ALLOC_CORES, &cores) != ESPANK_SUCCESS) cores = nullptr;
  return HasNodeAlone(cores == nullptr ? "" : cores, Item<uint16_t>(spank, S_JOB_NCPUS).value_or(0),
                      ::sysconf(_SC_NPROCESSORS_ONLN));
}

void AddRendezvous(const Environment& environment, const std::optional<Rendezvous>& rendezvous,
                   const std::string& solo_key, launch::Writer& message) {
  if (!solo_key.empty()) {
    message.Add(key::kKey, solo_key);
    return;
  }
  message.Add(key::kKey, rendezvous->key);
  message.Add(key::kHeadHost, environment.First("SLURM_SRUN_COMM_HOST"));
  message.Add(key::kHeadPort, rendezvous->port);
}

void AddNode(spank_t spank, const Environment& environment, launch::Writer& message) {
  // A batch script has one node, whatever its allocation has; Slurm calls that 0.
  const uint32_t nodes = Item<uint32_t>(spank, S_JOB_NNODES).value_or(0);
  const uint32_t tasks = Item<uint32_t>(spank, S_JOB_TOTAL_TASK_COUNT).value_or(0);
  message.Add(key::kNodes, std::max(nodes, 1u));
  message.Add(key::kTasks, std::max(tasks, 1u));
  message.Add(key::kLocalTasks, Item<uint32_t>(spank, S_JOB_LOCAL_TASK_COUNT).value_or(1));
  message.Add(key::kNodeId, Item<uint32_t>(spank, S_JOB_NODEID).value_or(0));
  const std::string_view job_nodes = environment.First("SLURM_JOB_NUM_NODES", "SLURM_NNODES");
  message.Add(key::kJobNodes, job_nodes.empty() ? std::to_string(nodes) : job_nodes);
  message.Add(key::kHost, NodeName());
  if (const std::string_view at = environment.First("SLURM_TOPOLOGY_ADDR"); !at.empty()) {
    message.Add(key::kTopology, at);
    message.Add(key::kTopologyPattern, environment.First("SLURM_TOPOLOGY_ADDR_PATTERN"));
  }
  message.Add(key::kWorkDir, environment.First("SLURM_SUBMIT_DIR", "PWD"));
  const std::string_view gpus = StepGpus(environment, IsAlone(spank));
  if (!gpus.empty()) message.Add(key::kGpus, gpus);
}

// Cannot be guessed: whoever knows it may still not be the job's user, which the daemon checks.
Result<std::string> SocketName(spank_t spank, uid_t uid, uint32_t step) {
  const Result<std::string> random = RandomHex<8>();
  if (!random.ok()) return random.status();
  return "sonde/" + std::to_string(uid) + "/" +
         std::to_string(Item<uint32_t>(spank, S_JOB_ID).value_or(0)) + "." + StepName(step) + "." +
         std::to_string(Item<uint32_t>(spank, S_JOB_NODEID).value_or(0)) + "." + *random;
}

void Preload(spank_t spank, const Context& context) {
  const std::string old(JobEnvironment(spank).First(preload::kVariable));
  const bool mpi = WatchesMpi(context.options), io = WatchesIo(context.options);
  if (!mpi && !io && old.find(preload::kClient) == std::string::npos) return;
  const std::string value = preload::With(old, context.config.libraries, mpi, io);
  if ((mpi && value.find(preload::kMpi) == std::string::npos) ||
      (io && value.find(preload::kIo) == std::string::npos)) {
    slurm_info(
        "sonde: calls of MPI or for files are not counted: not all of the libraries are in %s",
        context.config.libraries.c_str());
  }
  if (value == old) return;
  const std::string options =
      preload::SanitizerOptions(JobEnvironment(spank).First(preload::kSanitizerVariable));
  // Each of these may move the array that a JobEnvironment reads.
  spank_setenv(spank, preload::kSanitizerVariable, options.c_str(), 1);
  spank_setenv(spank, preload::kVariable, value.c_str(), 1);
}

Status PrepareDaemon(spank_t spank, Context& context, uint32_t step, std::string_view role,
                     const std::optional<Rendezvous>& rendezvous) {
  if (::access(context.config.sonded.c_str(), X_OK) != 0) {
    return SystemError("execute " + context.config.sonded);
  }
  Result<Credentials> credentials = JobCredentials(spank);
  if (!credentials.ok()) return credentials.status();
  const Result<std::string> socket = SocketName(spank, credentials->uid, step);
  if (!socket.ok()) return socket.status();
  std::string solo_key;
  if (role == "solo") {
    Result<std::string> random = RandomHex<kKeyDigits / 2>();
    if (!random.ok()) return random.status();
    solo_key = std::move(*random);
  }
  const Environment environment = JobEnvironment(spank);
  const std::string job = std::to_string(Item<uint32_t>(spank, S_JOB_ID).value_or(0));
  launch::Writer message(launch::kLaunch);
  message.Add(key::kRole, role);
  message.Add(key::kUid, credentials->uid);
  message.Add(key::kSocket, *socket);
  AddRendezvous(environment, rendezvous, solo_key, message);
  AddNode(spank, environment, message);
  AddStep(spank, job, environment, context.options, context.config, message);

  Process process;
  process.path = context.config.sonded;
  process.arguments = {"sonded", "--" + std::string(role), job + "." + StepName(step)};
  process.environment = DaemonEnvironment(environment);
  process.application = *socket;
  SONDE_RETURN_IF_ERROR(
      context.step_daemon.Prepare(std::move(process), std::move(*credentials), message.packet()));
  // Last: it may move the array that `environment` reads.
  spank_setenv(spank, "SONDE_SOCKET", socket->c_str(), 1);
  spank_setenv(spank, "SONDE_LEVEL", std::to_string(context.options.level).c_str(), 1);
  Preload(spank, context);
  return {};
}

// A program in a step that is not watched must not report to the daemon of the step around it, nor
// have the libraries that were loaded for that one.
void HideOuterDaemon(spank_t spank, const Context& context) {
  spank_unsetenv(spank, "SONDE_SOCKET");
  spank_unsetenv(spank, "SONDE_LEVEL");
  const std::string old(JobEnvironment(spank).First(preload::kVariable));
  const std::string value = preload::Without(old, context.config.libraries);
  // An empty variable says the same as none.
  if (value != old) spank_setenv(spank, preload::kVariable, value.c_str(), 1);
}

void UseEvents(spank_t spank, Context& context, std::string_view packet) {
  Result<AskedEvents> events = ParseEvents(packet);
  if (!events.ok()) {
    slurm_error("sonde: %s; no counters", std::string(events.status().message()).c_str());
    return;
  }
  context.events = std::move(*events);
  context.paranoid = PerfEventParanoid();
  context.syscalls =
      SyscallsTracepoint(MayCountMachine(context.config.machine_counters, IsAlone(spank)));
}

// Waits once for the daemon's list of events; later tasks take it if it has come meanwhile.
void TakeEvents(spank_t spank, Context& context) {
  if (!context.events.task.empty() || context.options.level < 3) return;
  const Deadline deadline(context.waited_for_events ? std::chrono::milliseconds(0) : kEventsWait);
  context.waited_for_events = true;
  std::string packet;
  for (;;) {
    // Now and then is looked whether there is still somebody to wait for.
    const Deadline next(std::chrono::milliseconds(std::min(deadline.LeftMs(), 20)));
    switch (context.step_daemon.lifeline().Receive(packet, next)) {
      case Lifeline::Event::kPacket:
        if (packet[0] == launch::kEvents) return UseEvents(spank, context, packet);
        break;
      case Lifeline::Event::kTimeout:
        if (deadline.LeftMs() == 0 || context.step_daemon.Gone()) return;
        break;
      case Lifeline::Event::kEnd:
        return;
    }
  }
}

// Once, when there is a task to count for.
void SendMachineEvents(spank_t spank, Context& context) {
  const std::vector<launch::MachineEvent> events = std::exchange(context.events.machine, {});
  if (events.empty()) return;
  if (!MayCountMachine(context.config.machine_counters, IsAlone(spank))) {
    return context.step_daemon.Tell(launch::Writer(launch::kMachine));
  }
  OfferMachineEvents(events, [&](const launch::Writer& message, std::span<const int> fds) {
    context.step_daemon.Tell(message, fds);
  });
}

// With tasks, slurmstepd's errors go to srun's stderr as well, one of every node; what is of the
// administrator's interest goes to the log alone.
void Stop(Context& context) {
  if (context.step_daemon.Stop()) return;
  slurm_info("sonde: sonded has not finished after %d ms and is killed",
             static_cast<int>(StepDaemon::kStop.count()));
}

}  // namespace

void StepdInitPostOpt(spank_t spank, Context& context) {
  context.stepd = getpid();
  const std::optional<uint32_t> step = Item<uint32_t>(spank, S_JOB_STEPID);
  if (!step || *step == SLURM_EXTERN_CONT) return;
  HideRendezvous(spank);
  if (context.options.level > 0) {
    context.config_error = LoadSondeConf(JobEnvironment(spank), context.config);
    if (!context.config_error.ok()) {
      slurm_error("sonde: %s; ignored", std::string(context.config_error.message()).c_str());
    }
  }
  const std::optional<Rendezvous> rendezvous = ParseRendezvous(context.options.rendezvous);
  const std::string_view role = ChooseRole(*step, context, rendezvous);
  if (role.empty()) return HideOuterDaemon(spank, context);
  const Status status = PrepareDaemon(spank, context, *step, role, rendezvous);
  if (status.ok()) return;
  slurm_error("sonde: no telemetry for step %s: %s", StepName(*step).c_str(),
              std::string(status.message()).c_str());
  HideOuterDaemon(spank, context);
}

void StepdTaskPostFork(spank_t spank, Context& context) {
  if (!context.step_daemon.prepared()) return;
  const Status started = context.step_daemon.Start(getpid() != context.stepd);
  if (!started.ok()) {
    slurm_info("sonde: no telemetry on this node: %s", std::string(started.message()).c_str());
  }
  if (!context.step_daemon.started()) return;
  const std::optional<pid_t> pid = Item<pid_t>(spank, S_TASK_PID);
  const std::optional<uint32_t> rank = Item<uint32_t>(spank, S_TASK_GLOBAL_ID);
  if (!pid || !rank) return;
  // Tasks start together: whatever slurmstepd waited for before them is not theirs.
  getrusage(RUSAGE_CHILDREN, &context.children_before);
  launch::Writer message(launch::kTask);
  message.Add(key::kRank, *rank);
  message.Add(key::kLocal, Item<int>(spank, S_TASK_ID).value_or(0));
  message.Add(key::kPid, *pid);
  TakeEvents(spank, context);
  SendMachineEvents(spank, context);
  if (context.events.task.empty()) return context.step_daemon.Tell(message);
  const TaskEvents opened =
      OpenEvents(*pid, context.events.task, context.paranoid, context.syscalls);
  message.Add(key::kPerf, opened.results);
  std::vector<int> fds;
  for (const UniqueFd& fd : opened.fds) fds.push_back(fd.get());
  context.step_daemon.Tell(message, fds);
}

// What the task used in all. slurmstepd has just waited for it and for nobody else since the last
// one, so the difference of its children's usage is the task's, exact to the end, where the
// daemon's last look is up to a period old. Not known in a child that runs the callback for
// slurmstepd.
void AddTotals(Context& context, launch::Writer& message) {
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

void StepdTaskExit(spank_t spank, Context& context) {
  if (!context.step_daemon.started()) return;
  launch::Writer message(launch::kTaskExit);
  message.Add(key::kRank, Item<uint32_t>(spank, S_TASK_GLOBAL_ID).value_or(0));
  message.Add(key::kStatus, Item<int>(spank, S_TASK_EXIT_STATUS).value_or(0));
  AddTotals(context, message);
  context.step_daemon.Tell(message);
  // Slurm kills what is left of the step before slurm_spank_exit, so the daemon must finish here.
  const uint32_t tasks = Item<uint32_t>(spank, S_JOB_LOCAL_TASK_COUNT).value_or(1);
  if (++context.tasks_ended >= tasks) Stop(context);
}

void StepdExit(Context& context) {
  Stop(context);
  context.step_daemon.Close();
}

}  // namespace sonde::spank
