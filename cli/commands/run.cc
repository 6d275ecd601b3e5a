// sonde run: one command under telemetry on this machine, without Slurm.
//
// Does the plugin's work on a node, with head and node in one process: starts sonded, tells it of
// the task, runs the command, prints the report. Exits with the command's exit code.
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>
#include <span>

#include "cli/command.h"
#include "cli/install.h"
#include "core/config.h"
#include "core/step_environment.h"
#include "core/text/options.h"
#include "core/text/user_tags.h"
#include "launcher/last_words.h"
#include "launcher/launch.h"
#include "launcher/lifeline.h"
#include "launcher/machine_open.h"
#include "launcher/perf_open.h"
#include "launcher/preload.h"
#include "launcher/process.h"
#include "launcher/proxy_socket.h"
#include "launcher/random.h"
#include "launcher/site/site_policy.h"

namespace sonde::cli {
namespace {

namespace key = launch::key;
using std::chrono::milliseconds;

struct RunOptions {
  int level = 2;
  int64_t period = kDefaultPeriod;
  std::string events;
  std::string alarms;
  std::vector<std::string> tags;
  preload::Calls calls;  // asked for
  bool quiet = false;
  std::vector<std::string> command;
};

std::string Base36(uint64_t number) {
  std::string text;
  do text.insert(text.begin(), "0123456789abcdefghijklmnopqrstuvwxyz"[number % 36]);
  while ((number /= 36) != 0);
  return text;
}

// Unique among this user's runs: the second in which it started, and the process.
std::string RunName() {
  const Nanos now = Clock::System().Now();
  return fmt::format("run-{}{}", Base36(static_cast<uint64_t>(now / kSecond)),
                     Base36(static_cast<uint64_t>(getpid())));
}

std::string Joined(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, " ")).substr(0, 4096);
}

std::string HostName() {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  return name;
}

std::string WorkingDirectory() {
  char path[4096] = {};
  return getcwd(path, sizeof path) == nullptr ? "" : path;
}

Result<std::string> LaunchPacket(const Environment& env, const RunOptions& options,
                                 const std::string& name, const std::string& socket) {
  launch::Writer message(launch::kLaunch);
  message.Add(key::kRole, "solo");
  message.Add(key::kJob, name);
  message.Add(key::kStep, "0");
  message.Add(key::kJobName, options.command.front());
  message.Add(key::kUser, env.user);
  message.Add(key::kUid, env.uid);
  message.Add(key::kHome, env.home);
  message.Add(key::kHost, HostName());
  message.Add(key::kWorkDir, WorkingDirectory());
  message.Add(key::kNodes, 1);
  message.Add(key::kJobNodes, 1);
  message.Add(key::kTasks, 1);
  message.Add(key::kLocalTasks, 1);
  message.Add(key::kLevel, options.level);
  message.Add(key::kPeriod, options.period);
  if (!options.events.empty()) message.Add(key::kEventList, options.events);
  if (!options.alarms.empty()) message.Add(key::kAlarms, options.alarms);
  if (options.calls.any()) message.Add(key::kCalls, preload::NamesOf(options.calls));
  if (!options.tags.empty())
    message.Add(key::kTags, fmt::format("{}", fmt::join(options.tags, ",")));
  const std::string_view gpus = launch::StepGpus(launch::Environment(environ), true);
  if (!gpus.empty()) message.Add(key::kGpus, gpus);
  message.Add(key::kSocket, socket);
  message.Add(key::kConfig, env.config_path);
  if (!env.archive.empty()) {
    message.Add(key::kArchive, env.archive);
  } else if (const char* archive = std::getenv("SONDE_ARCHIVE")) {
    message.Add(key::kArchive, archive);
  }
  message.Add(key::kCommand, Joined(options.command));
  KeptEnvironment kept(
      [&](std::string_view entry) { message.AddIfRoom(key::kEnvironment, entry); });
  for (char** at = environ; *at != nullptr; ++at) kept.Offer(*at);
  SONDE_RETURN_IF_ERROR(message.Complete());
  return message.packet();
}

std::vector<std::string> CurrentEnvironment() {
  std::vector<std::string> all;
  for (char** at = environ; *at != nullptr; ++at) all.emplace_back(*at);
  return all;
}

// Where the daemon listens.
struct Names {
  std::string application;  // abstract
  std::string proxy;        // a path; "": for programs for metric-proxy it does not
};

Result<Names> MakeNames(const Environment& env, const std::string& name) {
  const Result<std::string> random = launch::RandomHex<8>();
  if (!random.ok()) return random.status();
  Names names{fmt::format("sonde/{}/{}.{}", env.uid, name, *random), ""};
  const Result<Config> config = LoadConfig(env.config_path);
  if (!config.ok() || config->proxy_socket) {
    names.proxy = proxy_socket::Path(env.uid, name, *random);
  }
  return names;
}

Result<launch::Daemon> StartDaemon(const Environment& env, const RunOptions& options,
                                   const std::string& name, const Names& names) {
  const Result<std::string> path = SondedPath();
  if (!path.ok()) return path.status();
  const Result<std::string> packet = LaunchPacket(env, options, name, names.application);
  if (!packet.ok()) return packet.status();
  launch::Process process;
  process.path = *path;
  process.arguments = {*path, "--solo", name};
  process.environment = CurrentEnvironment();
  process.application = names.application;
  process.proxy = names.proxy;
  Result<launch::Daemon> daemon = launch::Start(process);
  if (!daemon.ok()) return daemon;
  SONDE_RETURN_IF_ERROR(daemon->lifeline.Send(*packet));
  return daemon;
}

// A child that waits for our word before it becomes the command, so that it is watched from its
// first instruction. Its end of `word` closes with exec, or sends the errno of a failed exec.
struct Child {
  pid_t pid = -1;
  UniqueFd word;  // one byte: go
  UniqueFd failure;
};

[[noreturn]] void BecomeCommand(const std::vector<std::string>& command, const std::string& preload,
                                int word, int failure) {
  char go = 0;
  std::signal(SIGPIPE, SIG_DFL);
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGQUIT, SIG_DFL);
  if (read(word, &go, 1) != 1) _exit(127);
  std::vector<char*> argv;
  argv.reserve(command.size() + 1);
  for (const std::string& argument : command) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  if (!preload.empty()) {
    const char* options = std::getenv(preload::kSanitizerVariable);
    setenv(preload::kSanitizerVariable,
           preload::SanitizerOptions(options == nullptr ? "" : options).c_str(), 1);
    setenv(preload::kVariable, preload.c_str(), 1);
  }
  execvp(argv[0], argv.data());
  const int error = errno;
  [[maybe_unused]] const ssize_t n = write(failure, &error, sizeof error);
  _exit(error == ENOENT ? 127 : 126);
}

// The command's LD_PRELOAD, "" if unchanged. The command runs without libraries not found.
std::string Preload(const RunOptions& options) {
  const bool all = options.level >= 4;
  const preload::Calls calls = {options.calls.mpi || all, options.calls.io || all,
                                options.calls.functions || all};
  if (!calls.any()) return "";
  const Result<std::string> path = LibraryPath();
  if (!path.ok()) {
    Note(fmt::format("calls are not counted: {}", path.status().message()));
    return "";
  }
  const char* old = std::getenv(preload::kVariable);
  return preload::With(old == nullptr ? "" : old, *path, calls);
}

// Of a step or command around this one the daemon is not this command's.
void ShowProxy(const std::string& path) {
  const char* named = std::getenv(proxy_socket::kVariable);
  if (named != nullptr && proxy_socket::IsOurs(named)) {
    unsetenv(proxy_socket::kVariable);
    named = nullptr;
  }
  const std::optional<std::string_view> value =
      named == nullptr ? std::nullopt : std::optional<std::string_view>(named);
  if (proxy_socket::IsFor(value, path, getuid())) setenv(proxy_socket::kVariable, path.c_str(), 1);
}

// `names`: nullptr if there is no daemon.
Result<Child> ForkCommand(const RunOptions& options, const Names* names) {
  int word[2], failure[2];
  if (pipe2(word, O_CLOEXEC) != 0) return SystemError("pipe");
  Child child{-1, UniqueFd(word[1]), UniqueFd()};
  const UniqueFd word_end(word[0]);
  if (pipe2(failure, O_CLOEXEC) != 0) return SystemError("pipe");
  child.failure = UniqueFd(failure[0]);
  const UniqueFd failure_end(failure[1]);
  if (names != nullptr) {
    setenv("SONDE_SOCKET", names->application.c_str(), 1);
    setenv("SONDE_LEVEL", std::to_string(options.level).c_str(), 1);
    ShowProxy(names->proxy);
  }
  const std::string preload = names == nullptr ? "" : Preload(options);
  child.pid = fork();
  if (child.pid < 0) return SystemError("fork");
  if (child.pid == 0) {
    child.word.Reset();
    BecomeCommand(options.command, preload, word_end.get(), failure_end.get());
  }
  return child;
}

void SendTask(launch::Lifeline& lifeline, pid_t pid, int level) {
  launch::Writer message(launch::kTask);
  message.Add(key::kRank, 0);
  message.Add(key::kLocal, 0);
  message.Add(key::kPid, pid);
  std::vector<int> fds;
  launch::TaskEvents opened;
  std::string packet;
  const launch::Deadline deadline(milliseconds(2000));
  if (level >= 3 && lifeline.Receive(packet, deadline) == launch::Lifeline::Event::kPacket) {
    const auto events = launch::ParseEvents(packet);
    if (events.ok()) {
      // As far as the user may: on most machines only root may.
      launch::OfferMachineEvents(events->machine,
                                 [&](const launch::Writer& machine, std::span<const int> which) {
                                   (void)lifeline.Send(machine.packet(), which);
                                 });
    }
    if (events.ok() && !events->task.empty()) {
      opened = launch::OpenEvents(pid, events->task, launch::PerfEventParanoid(),
                                  launch::SyscallsTracepoint(geteuid() == 0));
      message.Add(key::kPerf, opened.results);
      for (const auto& fd : opened.fds) fds.push_back(fd.get());
    }
  }
  (void)lifeline.Send(message.packet(), fds);
}

void SendTaskExit(launch::Lifeline& lifeline, int status, const rusage& usage) {
  const auto nanos = [](const timeval& t) { return t.tv_sec * kSecond + t.tv_usec * 1000LL; };
  launch::Writer message(launch::kTaskExit);
  message.Add(key::kRank, 0);
  message.Add(key::kStatus, status);
  message.Add(key::kUserTime, nanos(usage.ru_utime));
  message.Add(key::kSystemTime, nanos(usage.ru_stime));
  message.Add(key::kMaxRss, usage.ru_maxrss * 1024LL);
  message.Add(key::kMinorFaults, usage.ru_minflt);
  message.Add(key::kMajorFaults, usage.ru_majflt);
  message.Add(key::kReadBytes, usage.ru_inblock * 512LL);  // as in spank/slurmstepd.cc
  message.Add(key::kWrittenBytes, usage.ru_oublock * 512LL);
  (void)lifeline.Send(message.packet());
}

// The daemon's report to stderr, until it closes the lifeline; and why it failed, if it did.
void PrintReport(launch::Daemon& daemon, bool quiet) {
  const launch::Deadline deadline(milliseconds(5000));
  launch::LastWords words;
  std::string packet;
  bool heard = false;
  launch::Lifeline::Event event;
  while ((event = daemon.lifeline.Receive(packet, deadline)) == launch::Lifeline::Event::kPacket) {
    words.Take(packet);
    if (packet.empty() || packet[0] != launch::kReport) continue;
    heard = true;
    if (!quiet) std::fwrite(packet.data() + 1, 1, packet.size() - 1, stderr);
  }
  if (event != launch::Lifeline::Event::kEnd) return;
  words.ReadErrors(daemon.errors.get());
  const std::optional<launch::Failure> failure = words.Judge(heard);
  if (failure) Note(fmt::format("the daemon failed: {}", failure->reason));
}

pid_t g_child = 0;  // for the signal handler alone

void Forward(int signal) {
  if (g_child > 0) kill(g_child, signal);
}

// Ctrl-C reaches the command through the terminal; signals sent to us alone we pass on.
void ForwardSignals(pid_t child) {
  g_child = child;
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGQUIT, SIG_IGN);
  struct sigaction action {};
  action.sa_handler = Forward;
  action.sa_flags = SA_RESTART;
  for (const int signal : {SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}) sigaction(signal, &action, nullptr);
}

int ExitCode(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int RunCommand(const Environment& env, const RunOptions& options) {
  const std::string name = RunName();
  const Result<Names> names = MakeNames(env, name);
  if (!names.ok()) return Fail(names.status());
  Result<launch::Daemon> daemon = StartDaemon(env, options, name, *names);
  // The command runs all the same.
  if (!daemon.ok()) Note(fmt::format("no telemetry: {}", daemon.status().message()));
  Result<Child> child = ForkCommand(options, daemon.ok() ? &*names : nullptr);
  if (!child.ok()) return Fail(child.status());
  ForwardSignals(child->pid);
  if (daemon.ok()) SendTask(daemon->lifeline, child->pid, options.level);
  const char go = 1;
  [[maybe_unused]] const ssize_t n = write(child->word.get(), &go, 1);
  int status = 0;
  rusage usage{};
  while (wait4(child->pid, &status, 0, &usage) < 0 && errno == EINTR) {
  }
  int exec_error = 0;
  if (read(child->failure.get(), &exec_error, sizeof exec_error) == sizeof exec_error) {
    Note(fmt::format("cannot run {}: {}", options.command.front(), std::strerror(exec_error)));
  }
  if (daemon.ok()) {
    SendTaskExit(daemon->lifeline, status, usage);
    daemon->lifeline.Finish();
    PrintReport(*daemon, options.quiet);
    // The daemon has removed it, unless it was killed.
    if (!names->proxy.empty()) unlink(names->proxy.c_str());
  }
  return ExitCode(status);
}

}  // namespace

void RegisterRun(Arguments app, Run& run) {
  const auto options = std::make_shared<RunOptions>();
  Arguments sub = app.Command("run", "Run a command under telemetry on this machine");
  sub.Checked("--level",
              "What is recorded: 1 application, 2 system (default), 3 counters, 4 details",
              [options](const std::string& text) -> Status {
                options->level = ParseLevel(text);
                if (options->level >= 1) return {};
                return {Code::kInvalid, "expected 1 to 4"};
              })
      .Type("1..4");
  sub.Checked("--period", "Time between samples, 10ms to 1h (default 1s)",
              [options](const std::string& text) -> Status {
                options->period = ParsePeriod(text);
                if (options->period >= 0) return {};
                return {Code::kInvalid, std::string(kPeriodExpected)};
              })
      .Type("TIME");
  sub.Option("--events", options->events, "Hardware events, at level 3 and above").Type("LIST");
  sub.Option("--alarms", options->alarms, "A file of rules of alarms to raise")
      .Type("FILE")
      .ExistingFile();
  sub.Option("--tag", options->tags, "A tag of the profile; may be repeated")
      .Type("NAME=VALUE")
      .Repeated()
      .Checked([](const std::string& text) {
        return ValidUserTagList(text) ? Status()
                                      : Status(Code::kInvalid, std::string(kUserTagsExpected));
      });
  sub.Flag("--mpi", options->calls.mpi, "Count and time MPI calls, as level 4 does");
  sub.Flag("--io", options->calls.io, "Count and time calls for files, as level 4 does");
  sub.Flag("--functions", options->calls.functions,
           "Count calls of functions compiled with -finstrument-functions, as level 4 does");
  sub.Flag("-q,--quiet", options->quiet, "Print no report");
  sub.Option("command", options->command, "The command and its arguments").Required();
  sub.OnRead([options, &run] {
    run = [options](const Environment& env) { return RunCommand(env, *options); };
  });
}

}  // namespace sonde::cli
