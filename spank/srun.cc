// srun: when the step is known, binds the socket where its daemons meet and starts the head beside
// srun; at the end prints the head's report.
#include "spank/srun.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "core/clocks.h"
#include "core/text/port_range.h"
#include "launcher/last_words.h"
#include "launcher/random.h"
#include "launcher/read_file.h"
#include "launcher/site/head_slot.h"
#include "spank/describe.h"
#include "spank/plugin.h"
#include "spank/rendezvous.h"
#include "spank/site_grant.h"
#include "spank/user/srun_words.h"

namespace sonde::spank {
namespace {

namespace key = launch::key;

constexpr std::chrono::milliseconds kStop{2000};
// Packets of the head's that are read after that.
constexpr int kMostLate = 64;

// Whether there may be a head. Before the level is known, so it must be cheap: no socket is held by
// a srun that waits in the queue, or is not watched. Nor does such a srun look at sonded, whose
// file system may hang: what cannot be executed is found when the head is started, in a limited
// time.
Status MayWatch(const Context& context) {
  if (context.config.policy.monitor_steps) return {};
  return {Code::kUnavailable,
          "steps are not watched here (monitor_steps in " + context.config.path + ")"};
}

std::string WorkingDirectory() {
  char path[4096];
  return ::getcwd(path, sizeof(path)) != nullptr ? path : "";
}

std::string HostName() {
  char name[256] = "";
  ::gethostname(name, sizeof(name) - 1);
  return name;
}

// Slurm's items know the first component of a heterogeneous step only, srun's variables the sum.
void AddSize(spank_t spank, const Context& context, const launch::Environment& environment,
             launch::Writer& message) {
  const auto add = [&](std::string_view name, spank_item_t item, std::string_view variable) {
    const std::string_view sum = environment.First(variable);
    if (context.srun.components > 1 && !sum.empty()) {
      message.Add(name, sum);
    } else {
      message.Add(name, Item<uint32_t>(spank, item).value_or(0));
    }
  };
  add(key::kNodes, S_JOB_NNODES, "SLURM_NNODES");
  add(key::kTasks, S_JOB_TOTAL_TASK_COUNT, "SLURM_NTASKS");
  // Absent in a srun that was given the job's number from outside of it.
  const std::string_view job_nodes = environment.First("SLURM_JOB_NUM_NODES", "SLURM_NNODES");
  if (!job_nodes.empty()) message.Add(key::kJobNodes, job_nodes);
}

// What the head needs to be found.
struct Meeting {
  Listener listener;
  std::string key;
  std::string wrapped;  // the key for the nodes
  std::optional<PortRange> ports;
};

Result<Meeting> Meet(const Context& context, const launch::Environment& environment) {
  Meeting meeting;
  Result<std::string> random = launch::RandomHex<kKeyDigits / 2>();
  if (!random.ok()) return random.status();
  meeting.key = std::move(*random);
  const launch::SlurmNetwork network = launch::ReadSlurmNetwork(environment);
  Result<std::string> wrapped = WrapKey(meeting.key, network);
  if (!wrapped.ok()) return wrapped.status();
  meeting.wrapped = std::move(*wrapped);
  meeting.ports = AllowedPorts(context.config, network);
  Result<Listener> listener = Listen(network, meeting.ports);
  if (!listener.ok()) return listener.status();
  meeting.listener = std::move(*listener);
  return meeting;
}

// Where the report is written to, if that is a terminal.
void AddColumns(launch::Writer& message) {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    message.Add(key::kColumns, size.ws_col);
  }
}

launch::Writer HeadMessage(spank_t spank, std::string_view job, const Context& context,
                           const Meeting& meeting, const launch::Environment& environment) {
  launch::Writer message(launch::kLaunch);
  message.Add(key::kRole, "head");
  message.Add(key::kKey, meeting.key);
  if (meeting.ports) message.Add(key::kPorts, PortRangeText(*meeting.ports));
  message.Add(key::kBegun, WallNow());
  // Not S_JOB_UID, which some releases get wrong in srun.
  message.Add(key::kUid, ::getuid());
  message.Add(key::kHost, HostName());
  message.Add(key::kWorkDir, WorkingDirectory());
  AddColumns(message);
  AddSize(spank, context, environment, message);
  AddStep(spank, job, environment, context.options, context.config, message);
  return message;
}

// Nobody asked for telemetry, so nobody gets a report.
void WithoutReport(std::vector<std::string>& environment) {
  std::erase_if(environment,
                [](const std::string& entry) { return entry.starts_with("SONDE_REPORT="); });
  environment.emplace_back("SONDE_REPORT=off");
}

// From here on the socket is the head's alone: when that ends, nobody accepts in its place.
Status StartHead(spank_t spank, Context& context, std::string_view job, const std::string& name) {
  const launch::Environment environment(environ);
  if (const uint32_t most = context.config.daemons.max_heads; most > 0) {
    Result<UniqueFd> slot = launch::TakeHeadSlot(most, context.config.path);
    if (!slot.ok()) return slot.status();
    context.srun.slot = std::move(*slot);
  }
  const Result<Meeting> meeting = Meet(context, environment);
  if (!meeting.ok()) return meeting.status();
  const launch::Writer message = HeadMessage(spank, job, context, *meeting, environment);
  SONDE_RETURN_IF_ERROR(message.Complete());
  launch::Process process;
  process.path = context.config.sonded;
  process.arguments = {"sonded", "--head", name};
  process.environment = DaemonEnvironment(environment);
  if (!context.options.asked.level) WithoutReport(process.environment);
  process.listen_fd = meeting->listener.fd.get();
  process.placement.oom_score = context.config.daemons.oom_score;
  Result<launch::Daemon> daemon = Start(process);
  if (!daemon.ok()) return daemon.status();
  context.srun.head = std::move(*daemon);
  // If it is gone already, the end of its lifeline tells why (SrunExit).
  static_cast<void>(context.srun.head.lifeline.Send(message.packet()));
  // The nodes start no daemon without the key, so none looks for a head that could not be started.
  return RevealRendezvous(spank, RendezvousText({meeting->listener.port, meeting->wrapped}));
}

// Nobody asked for what the site watches by itself: it must not write into the job's output.
void TellUser(const Context& context, const std::string& line) {
  if (context.options.asked.level) {
    slurm_error("%s", line.c_str());
  } else {
    slurm_verbose("%s", line.c_str());
  }
}

bool IsAsync(const SrunContext& srun) {
  const Result<std::string> words = launch::ReadFile("/proc/self/cmdline");
  return words.ok() && SaysAsync(*words, srun.program);
}

// What the step gets. The allocation is there, so its account and partition are known.
void DecideForHead(Context& context) {
  GrantInCommand(launch::Environment(environ), context.config, context.options);
  TellLowered(context);
  if (!context.options.asked.level) context.config.report = false;
}

// Of a head that has ended. `heard`: its report.
void TellEnd(const Context& context, launch::LastWords& words, bool heard) {
  words.ReadErrors(context.srun.head.errors.get());
  const std::optional<launch::Failure> failure = words.Judge(heard);
  if (!failure && heard) return;
  if (failure && failure->kind == launch::FailureKind::kProfile) {
    TellUser(context, "sonde: " + failure->reason);
  } else {
    TellUser(context, "sonde: the head ended before the step: " +
                          (failure ? failure->reason : "its report is missing") +
                          "; what was measured is kept: " + context.config.sonde + " ls");
  }
}

// `read`: the user has read all that came of the report.
void TellUnfinished(const Context& context, bool read) {
  const std::string limit = std::to_string(kStop.count());
  if (read) {
    TellUser(context,
             "sonde: the head has not finished after " + limit + " ms; its report is not shown");
  } else {
    TellUser(context, "sonde: only a part of the report was read within " + limit +
                          " ms; see it with: " + context.config.sonde + " show " +
                          context.srun.step);
  }
}

}  // namespace

void SrunInit(Context& context) {
  context.srun.process = ::getpid();
  context.config_error = LoadSondeConf(launch::Environment(environ), context.config);
  context.srun.no_head = context.config.rules_known ? MayWatch(context) : context.config_error;
  OfferRendezvous(context.srun.no_head.ok() ? NoRendezvous() : "");
}

void SrunInitPostOpt(Context& context) {
  // srun has just read its options by getopt_long, which stops at the first word that is none.
  if (context.srun.components == 0) context.srun.program = static_cast<size_t>(std::max(optind, 0));
  ++context.srun.components;
}

void SrunLocalUserInit(spank_t spank, Context& context) {
  context.srun.launched = true;
  const uint32_t step = Item<uint32_t>(spank, S_JOB_STEPID).value_or(SLURM_PENDING_STEP);
  // The node alone handles the interactive step of salloc, like a batch script.
  if (step != SLURM_INTERACTIVE_STEP) DecideForHead(context);
  if (context.options.level == 0) return;
  if (!context.config_error.ok() && context.config.rules_known) {
    TellUser(context, "sonde: " + std::string(context.config_error.message()) + "; ignored");
  }
  const std::string job =
      NamingJob(Item<uint32_t>(spank, S_JOB_ID).value_or(0), launch::Environment(environ));
  const std::string& name = context.srun.step = job + "." + StepName(step);
  Status status = context.srun.no_head;
  if (status.ok()) status = StartHead(spank, context, job, name);
  if (!status.ok()) {
    TellUser(context,
             "sonde: no telemetry for step " + name + ": " + std::string(status.message()));
  } else if (context.config.report) {
    slurm_spank_log("sonde: telemetry level %d for step %s; watch it with: %s url %s",
                    context.options.level, name.c_str(), context.config.sonde.c_str(),
                    name.c_str());
  }
}

void SrunExit(Context& context) {
  launch::Lifeline& lifeline = context.srun.head.lifeline;
  if (!lifeline.open() || context.srun.stopped) return;
  context.srun.stopped = true;
  lifeline.Finish();
  const launch::Deadline deadline(kStop);
  launch::LastWords words;
  std::string packet;
  bool heard = !context.config.report;  // without a report there is nothing to hear
  bool read = true;                     // what was heard, by the user
  const auto hear = [&](std::string_view report) {
    heard = true;
    // After a gap the rest would only mislead.
    read = read && (!context.config.report || WriteToUser(report.substr(1), deadline));
  };
  // A head that sends all the while has not finished either; but what had come in time is taken.
  for (int late = 0; late < kMostLate; late += deadline.LeftMs() == 0 ? 1 : 0) {
    switch (lifeline.Receive(packet, deadline)) {
      case launch::Lifeline::Event::kEnd:
        if (!read) TellUnfinished(context, read);
        return TellEnd(context, words, heard);
      case launch::Lifeline::Event::kTimeout:
        return TellUnfinished(context, read);
      case launch::Lifeline::Event::kPacket:
        break;
    }
    words.Take(packet);
    if (packet[0] == launch::kReport) hear(packet);
  }
  TellUnfinished(context, read);
}

// A step of `srun --async` is launched by Slurm's controller once srun has gone. Slurm then calls
// neither local_user_init nor exit, so there is no head, and no node starts a daemon.
void SrunUnload(const Context& context) {
  const SrunContext& srun = context.srun;
  const bool asked = srun.components > 0 && context.options.asked.level.value_or(0) > 0;
  if (!asked || srun.launched || srun.process != ::getpid() || !IsAsync(srun)) return;
  TellUser(
      context,
      "sonde: steps of srun --async are not watched, as no srun stays for them: this one has no "
      "telemetry");
}

}  // namespace sonde::spank
