#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "core/launch.h"
#include "core/options.h"
#include "core/preload.h"
#include "spank/environment.h"
#include "spank/lifeline.h"
#include "spank/machine_open.h"
#include "spank/perf_open.h"
#include "spank/plugin_config.h"
#include "spank/process.h"
#include "spank/random.h"
#include "spank/rendezvous.h"
#include "spank/step_gpus.h"

namespace sonde::spank {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

PluginConfig Parse(std::vector<std::string> arguments, Status& status) {
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  PluginConfig config;
  status = ParseArguments(static_cast<int>(argv.size()), argv.data(), config);
  return config;
}

// Beyond 63 the kernel makes a process with threads wait while it enlarges the table.
TEST(UniqueFd, MovesUpWithinTheFirstTable) {
  UniqueFd fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  fd.MoveUp();
  EXPECT_GE(fd.get(), 16);
  EXPECT_LT(fd.get(), 64);
  EXPECT_EQ(::fcntl(fd.get(), F_GETFD), FD_CLOEXEC);
}

TEST(PluginConfig, ArgumentsOfPlugstack) {
  Status status;
  const PluginConfig config =
      Parse({"sonded=/opt/sonded", "config=/etc/s.conf", "sonde=/opt/sonde", "enable=no"}, status);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(config.sonded, "/opt/sonded");
  EXPECT_EQ(config.path, "/etc/s.conf");
  EXPECT_EQ(config.sonde, "/opt/sonde");
  EXPECT_FALSE(config.enable);
}

TEST(PluginConfig, AWrongArgumentIsNamedAndTheOthersCount) {
  for (const char* bad : {"sonded=relative", "enable=perhaps", "debug=1", "sonde="}) {
    Status status;
    const PluginConfig config = Parse({bad, "config=/etc/s.conf"}, status);
    ASSERT_FALSE(status.ok()) << bad;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(std::string(bad).substr(0, std::string(bad).find('='))));
    EXPECT_EQ(config.path, "/etc/s.conf");
    EXPECT_TRUE(config.sonded.starts_with('/'));
    EXPECT_TRUE(config.enable);
  }
}

TEST(PluginConfig, KeysOfTheDaemonAreLeftToIt) {
  PluginConfig config;
  const Status status = ParseSondeConf(
      "# site\nfanout = 4\nmonitor_batch = off # not here\nreport=off\nport_range = 7000-7010\n",
      "sonde.conf", config);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_FALSE(config.monitor_batch);
  EXPECT_TRUE(config.monitor_steps);
  EXPECT_FALSE(config.report);
  EXPECT_EQ(config.port_range, "7000-7010");
}

TEST(PluginConfig, AWrongValueIsNamedAndLeavesTheDefault) {
  PluginConfig config;
  const Status status =
      ParseSondeConf("\nmonitor_steps = maybe\nreport = off\n", "sonde.conf", config);
  EXPECT_EQ(status.message(), "sonde.conf:2: monitor_steps=maybe: expected yes or no");
  EXPECT_TRUE(config.monitor_steps);
  EXPECT_FALSE(config.report);
}

TEST(PluginConfig, TheEnvironmentOverridesTheFile) {
  const char* const variables[] = {"SONDE_REPORT=off", "SONDE_MONITOR_INTERACTIVE=yes", nullptr};
  PluginConfig config;
  config.path = "/nonexistent/sonde.conf";
  ASSERT_TRUE(LoadSondeConf(Environment(variables), config).ok());
  EXPECT_FALSE(config.report);
  EXPECT_TRUE(config.monitor_interactive);
}

TEST(Preload, LibrariesThatAreThereComeBeforeTheUsersOwn) {
  char made[] = "/tmp/sonde-preload-XXXXXX";
  const std::string at = ::mkdtemp(made);
  const auto touch = [&](const std::string& name) { std::ofstream(at + "/" + name) << ""; };
  std::filesystem::create_directory(at + "/sonde");
  touch("sonde/libsonde-mpi.so");
  EXPECT_EQ(preload::With("own.so", at, true, true), "own.so") << "without libsonde";
  touch("libsonde.so.1");
  const std::string mpi = at + "/libsonde.so.1:" + at + "/sonde/libsonde-mpi.so";
  EXPECT_EQ(preload::With("", at, true, true), mpi) << "the other one is not there";
  EXPECT_EQ(preload::With("own.so other.so", at, true, false), mpi + ":own.so:other.so");
  EXPECT_EQ(preload::With(mpi + ":own.so", at, true, false), mpi + ":own.so");
  EXPECT_EQ(preload::With(mpi + ":own.so", at, false, false), "own.so");
  EXPECT_EQ(preload::Without(mpi, at), "");
  EXPECT_EQ(preload::With("own.so", at + ":x", true, false), "own.so") << "cannot be written";
  std::filesystem::remove_all(at);
}

TEST(Preload, TheUsersWordOnTheSanitizersOrderStays) {
  EXPECT_EQ(preload::SanitizerOptions(""), "verify_asan_link_order=0");
  EXPECT_EQ(preload::SanitizerOptions("a=1"), "verify_asan_link_order=0:a=1");
  EXPECT_EQ(preload::SanitizerOptions("verify_asan_link_order=1"), "verify_asan_link_order=1");
}

TEST(StepGpus, AreWhatSlurmGaveElseWhatTheProgramMaySee) {
  const auto gpus = [](std::vector<const char*> variables, bool alone = true) {
    variables.push_back(nullptr);
    return std::string(StepGpus(Environment(variables.data()), alone));
  };
  // With devices confined by cgroups, CUDA counts from 0.
  EXPECT_EQ(gpus({"SLURM_JOB_GPUS=0,1,2,3", "CUDA_VISIBLE_DEVICES=0", "SLURM_STEP_GPUS=2"}), "2");
  EXPECT_EQ(gpus({"SLURM_JOB_GPUS=2,3", "ROCR_VISIBLE_DEVICES=0,1"}), "2,3");
  EXPECT_EQ(gpus({"SLURM_STEP_GPUS=5", "CUDA_VISIBLE_DEVICES=MIG-a-b,MIG-c"}), "MIG-a-b,MIG-c");
  EXPECT_EQ(gpus({"CUDA_VISIBLE_DEVICES=1", "GPU_DEVICE_ORDINAL=0"}), "1");
  EXPECT_EQ(gpus({"SLURM_STEP_GPUS=", "ZE_AFFINITY_MASK=0.1"}), "0.1");
  EXPECT_EQ(gpus({"HOME=/"}), "");
  // On a shared node only those that Slurm gave.
  EXPECT_EQ(gpus({"HOME=/"}, false), "none");
  EXPECT_EQ(gpus({"CUDA_VISIBLE_DEVICES=0,1,2,3"}, false), "none");
  EXPECT_EQ(gpus({"SLURM_STEP_GPUS=2"}, false), "2");
}

TEST(PortRange, OfSlurmConf) {
  EXPECT_EQ(FindSrunPortRange("ClusterName=c\nsrunportrange = 60001-63000 # fw\n"),
            PortRange(60001, 63000));
  EXPECT_EQ(FindSrunPortRange("#SrunPortRange=1-2\nSrunPort=3-4\n"), std::nullopt);
  for (const char* bad : {"", "1", "5-4", "0-9", "1-70000", "1-2x", "-"}) {
    EXPECT_EQ(ParsePortRange(bad), std::nullopt) << bad;
  }
}

TEST(Rendezvous, ASocketOfTheRangeIsBoundEvenWhenOthersAreTaken) {
  Result<Listener> first = Listen(std::nullopt);
  ASSERT_TRUE(first.ok());
  const uint16_t taken = first->port;
  const Result<Listener> none = Listen(PortRange(taken, taken));
  ASSERT_FALSE(none.ok());
  EXPECT_THAT(std::string(none.status().message()), HasSubstr("no free port from"));
  // Some port nearby is free.
  const PortRange range(static_cast<uint16_t>(taken - 20), taken);
  const Result<Listener> other = Listen(range);
  ASSERT_TRUE(other.ok());
  EXPECT_GE(other->port, range.first);
  EXPECT_LT(other->port, taken);
}

TEST(Rendezvous, OnlyWhatSrunWroteIsTaken) {
  const std::string key(64, 'a');
  const auto good = ParseRendezvous("4242:" + key);
  ASSERT_TRUE(good);
  EXPECT_EQ(good->port, 4242);
  EXPECT_EQ(good->key, key);
  for (const std::string& bad :
       {std::string(), std::string("4242"), "0:" + key, "70000:" + key, "4242:" + key + "a",
        "4242:" + std::string(64, 'A'), "4242:" + std::string(63, 'a'), ":" + key, "x:" + key}) {
    EXPECT_FALSE(ParseRendezvous(bad)) << bad;
  }
}

TEST(EventList, IsCheckedAtSubmit) {
  for (const char* good : {"cycles", "a,b:u,INST_RETIRED:ANY_P,r01c2,x.y-z=1"}) {
    EXPECT_TRUE(ValidEventList(good)) << good;
  }
  std::string many = "a";
  for (int i = 1; i < 24; ++i) many += ",a";
  EXPECT_TRUE(ValidEventList(many));
  for (const std::string& bad :
       {std::string(), std::string(","), std::string("a,"), std::string("a b"), std::string("a\n"),
        many + ",a", std::string(129, 'a'), std::string("a/b/")}) {
    EXPECT_FALSE(ValidEventList(bad)) << bad;
  }
}

TEST(Random, KeysDiffer) {
  const auto a = RandomHex<32>(), b = RandomHex<32>();
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_EQ(a->size(), 64u);
  EXPECT_NE(*a, *b);
}

TEST(Lifeline, APeerThatDoesNotReadNeverBlocksTheSender) {
  UniqueFd daemon;
  Result<Lifeline> lifeline = Lifeline::Create(daemon);
  ASSERT_TRUE(lifeline.ok());
  const std::string packet(1000, 'T');
  Status status;
  for (int i = 0; i < 100'000 && status.ok(); ++i) status = lifeline->Send(packet);
  EXPECT_EQ(status.code(), Code::kUnavailable);
}

TEST(Lifeline, APeerThatIsGoneIsAnErrorAndNoSignal) {
  UniqueFd daemon;
  Result<Lifeline> lifeline = Lifeline::Create(daemon);
  ASSERT_TRUE(lifeline.ok());
  daemon.Reset();
  EXPECT_FALSE(lifeline->Send("X").ok());
  std::string packet;
  EXPECT_EQ(lifeline->Receive(packet, Deadline(milliseconds(5000))), Lifeline::Event::kEnd);
}

TEST(Lifeline, WaitsAreBounded) {
  UniqueFd daemon;
  Result<Lifeline> lifeline = Lifeline::Create(daemon);
  ASSERT_TRUE(lifeline.ok());
  std::string packet;
  EXPECT_EQ(lifeline->Receive(packet, Deadline(milliseconds(0))), Lifeline::Event::kTimeout);
  ASSERT_EQ(::send(daemon.get(), "Rtext", 5, 0), 5);
  EXPECT_EQ(lifeline->Receive(packet, Deadline(milliseconds(0))), Lifeline::Event::kPacket);
  EXPECT_EQ(packet, "Rtext");
}

// As in Slurm's contained callbacks, whose children have copies of our descriptors.
TEST(Lifeline, FinishInAChildIsSeenThoughWeHoldTheDescriptor) {
  UniqueFd daemon;
  Result<Lifeline> lifeline = Lifeline::Create(daemon);
  ASSERT_TRUE(lifeline.ok());
  const pid_t child = ::fork();
  if (child == 0) {
    lifeline->Finish();
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  char byte;
  EXPECT_EQ(::recv(daemon.get(), &byte, 1, MSG_DONTWAIT), 0);
}

// What a program started by Start writes to its lifeline, until it ends.
std::string Output(Lifeline& lifeline) {
  std::string all, packet;
  const Deadline deadline(milliseconds(10'000));
  while (lifeline.Receive(packet, deadline) == Lifeline::Event::kPacket) all += packet;
  return all;
}

Process Shell(const std::string& script) {
  return {"/bin/sh", {"sh", "-c", script}, {"PATH=/usr/bin:/bin"}, -1, nullptr};
}

TEST(Start, TheDaemonHasItsOwnDescriptorsAndSession) {
  const UniqueFd stray(::open("/etc/passwd", O_RDONLY));  // not closed on exec
  Result<Listener> listener = Listen(std::nullopt);
  ASSERT_TRUE(stray && listener.ok());
  Process process = Shell("");
  process.arguments[2] =
      "exec /usr/bin/python3 -c \"import os, socket\n"
      "s = socket.socket(fileno=3)\n"
      "fds = [n for n in range(4096) if os.path.exists(f'/proc/self/fd/{n}')]\n"
      "facts = [fds, os.readlink('/proc/self/fd/0'), os.getcwd(), os.getsid(0) == os.getpid(), "
      "oct(os.umask(0)), socket.socket(fileno=4).getsockname()[1]]\n"
      "s.send(repr(facts).encode())\"";
  process.listen_fd = listener->fd.get();
  Result<Daemon> daemon = Start(process);
  ASSERT_TRUE(daemon.ok());
  EXPECT_EQ(Output(daemon->lifeline), "[[0, 1, 2, 3, 4], '/dev/null', '/', True, '0o77', " +
                                          std::to_string(listener->port) + "]");
}

TEST(Start, LowDescriptorsOfTheLauncherDoNotGetInTheWay) {
  // With 0 to 9 closed, every descriptor that is made would land where the daemon's go.
  const pid_t child = ::fork();
  if (child == 0) {
    for (int fd = 0; fd < 10; ++fd) ::close(fd);
    Process process = Shell("");
    process.arguments[2] =
        "exec /usr/bin/python3 -c \"import socket; socket.socket(fileno=3).send(b'here')\"";
    Result<Daemon> daemon = Start(process);
    ::_exit(daemon.ok() && Output(daemon->lifeline) == "here" ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(Start, TheApplicationCanConnectBeforeTheDaemonRuns) {
  const std::string name = "sonde-test/" + std::to_string(::getpid());
  Process process = Shell(
      "exec /usr/bin/python3 -c \"import socket\n"
      "s = socket.socket(fileno=5)\n"
      "s.setblocking(True)\n"
      "socket.socket(fileno=3).send(s.accept()[0].recv(100))\"");
  process.application = name;
  Result<Daemon> daemon = Start(process);
  ASSERT_TRUE(daemon.ok());
  const UniqueFd program(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  ASSERT_EQ(::connect(program.get(), reinterpret_cast<const sockaddr*>(&address), length), 0);
  ASSERT_EQ(::send(program.get(), "hello", 5, MSG_NOSIGNAL), 5);
  EXPECT_EQ(Output(daemon->lifeline), "hello");
}

TEST(Start, WhatCannotBeExecutedIsDescribed) {
  Process process = Shell("");
  process.path = "/nonexistent/sonded";
  const Result<Daemon> daemon = Start(process);
  ASSERT_FALSE(daemon.ok());
  EXPECT_EQ(daemon.status().message(), "execute /nonexistent/sonded: No such file or directory");
}

TEST(Start, NoChildIsLeftToTheLauncher) {
  Result<Daemon> daemon = Start(Shell("exit 0"));
  ASSERT_TRUE(daemon.ok());
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

TEST(Start, AHangingDaemonCanBeEndedWithAllOfItsSession) {
  // The second process tells its number, so that it can be looked for.
  Result<Daemon> daemon =
      Start(Shell("sleep 1000 & exec /usr/bin/python3 -c \"import socket, time\n"
                  "socket.socket(fileno=3).send(b'$!')\n"
                  "time.sleep(1000)\""));
  ASSERT_TRUE(daemon.ok());
  std::string packet;
  ASSERT_EQ(daemon->lifeline.Receive(packet, Deadline(milliseconds(10'000))),
            Lifeline::Event::kPacket);
  const ProcessId second = Identify(std::stoi(packet));
  ASSERT_NE(second.pid, 0);
  EXPECT_FALSE(WaitForEnd(daemon->process, Deadline(milliseconds(0))));
  KillSession(daemon->process);
  EXPECT_TRUE(WaitForEnd(daemon->process, Deadline(milliseconds(10'000))));
  EXPECT_TRUE(WaitForEnd(second, Deadline(milliseconds(10'000))));
}

TEST(ProcessId, ANumberThatWasGivenAgainIsAnotherProcess) {
  const ProcessId own = Identify(::getpid());
  ASSERT_EQ(own.pid, ::getpid());
  EXPECT_FALSE(WaitForEnd(own, Deadline(milliseconds(0))));
  const ProcessId former{own.pid, own.start - 1};
  EXPECT_TRUE(WaitForEnd(former, Deadline(milliseconds(0))));
  KillSession(former);  // would end this test
  EXPECT_TRUE(WaitForEnd({}, Deadline(milliseconds(0))));
}

TEST(Start, TheEndsAreThereBeforeTheDaemonIs) {
  const std::string name = "sonde-test/ends." + std::to_string(::getpid());
  Result<Ends> ends = MakeEnds(name);
  ASSERT_TRUE(ends.ok());
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  const auto connected = [&] {
    const UniqueFd program(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    return ::connect(program.get(), reinterpret_cast<const sockaddr*>(&address), length) == 0;
  };
  EXPECT_FALSE(connected()) << "nobody listens before the daemon's user does";
  ASSERT_TRUE(ends->lifeline.Send("first").ok());
  Process process = Shell(
      "exec /usr/bin/python3 -c \"import socket\n"
      "s = socket.socket(fileno=3)\n"
      "s.setblocking(True)\n"
      "s.send(s.recv(100))\"");
  const Result<ProcessId> started = Start(process, *ends);
  ASSERT_TRUE(started.ok());
  EXPECT_TRUE(connected());
  ends->daemon.Reset();
  EXPECT_EQ(Output(ends->lifeline), "first");
  EXPECT_TRUE(WaitForEnd(*started, Deadline(milliseconds(10'000))));
}

TEST(Start, TheDaemonBecomesTheUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const Credentials nobody{65534, 65534, {65534, 4321}};
  Process process = Shell("");
  process.become = &nobody;
  process.arguments[2] =
      "exec /usr/bin/python3 -c \"import os, socket\n"
      "facts = [os.getresuid(), os.getresgid(), sorted(os.getgroups())]\n"
      "socket.socket(fileno=3).send(repr(facts).encode())\"";
  Result<Daemon> daemon = Start(process);
  ASSERT_TRUE(daemon.ok());
  EXPECT_EQ(Output(daemon->lifeline),
            "[(65534, 65534, 65534), (65534, 65534, 65534), [4321, 65534]]");
}

std::string EventsPacket(const std::vector<launch::PerfEvent>& task,
                         const std::vector<launch::MachineEvent>& machine = {}) {
  std::string packet(1, launch::kEvents);
  const auto add = [&packet](const auto& events) {
    packet += static_cast<char>(events.size());
    packet.append(reinterpret_cast<const char*>(events.data()),
                  events.size() * sizeof(*events.data()));
  };
  add(task);
  add(machine);
  return packet;
}

launch::MachineEvent MachineEvent(std::string_view pmu, uint32_t cpu, uint64_t config) {
  launch::MachineEvent event{};
  pmu.copy(event.pmu, sizeof(event.pmu) - 1);
  event.cpu = cpu;
  event.config = config;
  return event;
}

TEST(PerfEvents, AMalformedListIsRefused) {
  const std::string good = EventsPacket({{PERF_TYPE_SOFTWARE, 1, 2, 0, 0}},
                                        {MachineEvent("power", 3, 7), MachineEvent("x", 0, 0)});
  ASSERT_TRUE(ParseEvents(good).ok());
  EXPECT_EQ(ParseEvents(good)->task.at(0).config, 2u);
  EXPECT_EQ(ParseEvents(good)->machine.at(0).cpu, 3u);
  EXPECT_TRUE(ParseEvents(EventsPacket({})).ok());
  const std::vector<launch::PerfEvent> many(launch::kMaxEvents + 1);
  const std::vector<launch::MachineEvent> machines(launch::kMaxMachineEvents + 1);
  for (const std::string& bad :
       {std::string(), std::string("E"), std::string("R\0\0", 3), std::string("E\0", 2), good + "x",
        good.substr(0, good.size() - 1), EventsPacket(many), EventsPacket({}, machines)}) {
    EXPECT_FALSE(ParseEvents(bad).ok()) << bad.size();
  }
}

// Devices as the kernel lists them; "power" is the kernel's own clock of a processor, which every
// machine has and only root may count.
class MachineEvents : public testing::Test {
 protected:
  MachineEvents() {
    std::string pattern = testing::TempDir() + "sonde-devices-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) std::abort();
    devices_ = pattern;
    for (const char* device : {"power", "breakpoint", "uncore_imc_0"}) Add(device);
  }
  ~MachineEvents() override { std::filesystem::remove_all(devices_); }

  void Add(const std::string& device) const {
    std::filesystem::create_directories(devices_ + "/" + device);
    std::ofstream(devices_ + "/" + device + "/type") << PERF_TYPE_SOFTWARE << "\n";
    std::ofstream(devices_ + "/" + device + "/cpumask") << "0,7-9\n";
  }
  std::string Results(const launch::MachineEvent& event) const {
    return OpenMachineEvents(std::span(&event, 1), devices_).results;
  }

  std::string devices_;
};

TEST_F(MachineEvents, OnlyKnownDevicesOnTheirOwnProcessorsAreOpened) {
  const std::string denied = std::to_string(EACCES);
  EXPECT_EQ(Results(MachineEvent("breakpoint", 0, 0)), denied);
  EXPECT_EQ(Results(MachineEvent("../devices/power", 0, 0)), denied);
  EXPECT_EQ(Results(MachineEvent("", 0, 0)), denied);
  EXPECT_EQ(Results(MachineEvent("power", 1, 0)), denied);
  EXPECT_EQ(Results(MachineEvent("power", 10, 0)), denied);
  EXPECT_EQ(Results(MachineEvent("amd_umc_0", 0, 0)), std::to_string(ENODEV));
  launch::MachineEvent unended{};
  std::fill(std::begin(unended.pmu), std::end(unended.pmu), 'a');
  EXPECT_EQ(Results(unended), denied);
}

TEST_F(MachineEvents, WhatIsOpenedCounts) {
  const launch::MachineEvent event = MachineEvent("power", 0, PERF_COUNT_SW_CPU_CLOCK);
  const TaskEvents opened = OpenMachineEvents(std::span(&event, 1), devices_);
  if (opened.results != "0") GTEST_SKIP() << "not permitted here: errno " << opened.results;
  uint64_t words[3] = {};
  ASSERT_EQ(::read(opened.fds.at(0).get(), words, sizeof(words)), ssize_t{sizeof(words)});
  EXPECT_GT(words[0], 0u);
  EXPECT_EQ(words[1], words[2]);
}

TEST_F(MachineEvents, ComeInSmallPacketsWithTheirPlaces) {
  const std::vector<launch::MachineEvent> events(20, MachineEvent("breakpoint", 0, 0));
  std::vector<std::string> packets;
  OfferMachineEvents(events, [&](const launch::Writer& packet, std::span<const int> fds) {
    EXPECT_TRUE(fds.empty());
    packets.push_back(packet.packet().substr(0, packet.packet().find('\n')));
  });
  EXPECT_THAT(packets, testing::ElementsAre("Mfirst=0", "Mfirst=8", "Mfirst=16"));
}

TEST(MachinePolicy, AStepMustHaveTheNodeToItselfUnlessTheSiteSaysOtherwise) {
  using enum PluginConfig::Machine;
  EXPECT_TRUE(MayCountMachine(kExclusive, true));
  EXPECT_FALSE(MayCountMachine(kExclusive, false));
  EXPECT_TRUE(MayCountMachine(kAlways, false));
  EXPECT_FALSE(MayCountMachine(kNever, true));
}

TEST(MachinePolicy, AJobIsAloneWithAllCoresOrAllThreads) {
  EXPECT_TRUE(HasNodeAlone("0-63", 1, 64));
  EXPECT_TRUE(HasNodeAlone("0-31,32-63", 1, 64));
  EXPECT_FALSE(HasNodeAlone("0-30,32-63", 63, 64));
  EXPECT_TRUE(HasNodeAlone("0-31", 64, 64));  // two threads a core
  EXPECT_FALSE(HasNodeAlone("", 1, 64));
  EXPECT_FALSE(HasNodeAlone("", 0, -1));
  EXPECT_EQ(CountListed("0-3,8"), 5);
  for (const char* bad : {"x", "3-1", "0-3,", "1--2", "-"}) {
    EXPECT_LT(CountListed(bad), 5) << bad;
  }
}

TEST(MachinePolicy, IsAnArgumentOfPlugstackConf) {
  using enum PluginConfig::Machine;
  Status status;
  EXPECT_EQ(Parse({}, status).machine_counters, kExclusive);
  EXPECT_EQ(Parse({"machine_counters=never"}, status).machine_counters, kNever);
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(Parse({"machine_counters=yes"}, status).machine_counters, kExclusive);
  EXPECT_THAT(std::string(status.message()), HasSubstr("expected exclusive, always or never"));
}

TEST(PerfEvents, WhatWouldCountOthersIsRefused) {
  const launch::PerfEvent events[] = {
    {PERF_TYPE_TRACEPOINT, 1, 1, 0, 0},
    {PERF_TYPE_BREAKPOINT, 1, 0, 0, 0},
    {42, 1, 0, 0, 0},  // a device's own type, such as an uncore box
#if defined(__x86_64__)
    {PERF_TYPE_RAW, 1, 0x00c0 | 1u << 21, 0, 0},  // AnyThread
#endif
  };
  const TaskEvents opened = OpenEvents(::getpid(), events, 2);
  EXPECT_TRUE(opened.fds.empty());
  for (const char c : opened.results) EXPECT_THAT(std::string("13,"), HasSubstr(std::string(1, c)));
}

TEST(PerfEvents, SystemCallsAreForStepsAlone) {
  std::string kernel = testing::TempDir() + "sonde-kernel-XXXXXX";
  ASSERT_NE(::mkdtemp(kernel.data()), nullptr);
  EXPECT_EQ(SyscallsTracepoint(false, kernel), -EPERM);
  EXPECT_EQ(SyscallsTracepoint(true, kernel), -ENOENT);
  const std::string folder = kernel + "/debug/tracing/events/raw_syscalls/sys_enter";
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/id") << "no number\n";
  EXPECT_EQ(SyscallsTracepoint(true, kernel), -ENOENT);
  std::ofstream(folder + "/id") << "443\n";
  EXPECT_EQ(SyscallsTracepoint(true, kernel), 443);
  std::filesystem::remove_all(kernel);
  const launch::PerfEvent events[] = {{PERF_TYPE_TRACEPOINT, 1, launch::kSyscalls, 0, 0}};
  EXPECT_EQ(OpenEvents(::getpid(), events, 2).results, "1") << "not allowed: EPERM";
  EXPECT_EQ(OpenEvents(::getpid(), events, 2, -ENOENT).results, "2");
}

// A child that waits for us, then execs: as a task of slurmstepd's does.
TEST(PerfEvents, CountFromExecOnInOneGroup) {
  int go[2];
  ASSERT_EQ(::pipe(go), 0);
  const pid_t task = ::fork();
  if (task == 0) {
    char byte;
    ::close(go[1]);
    [[maybe_unused]] const ssize_t got = ::read(go[0], &byte, 1);
    ::execl("/bin/sh", "sh", "-c", "/bin/true; /bin/true", nullptr);
    ::_exit(127);
  }
  const launch::PerfEvent events[] = {
      {PERF_TYPE_TRACEPOINT, 1, 1, 0, 0},  // a leader that does not open
      {PERF_TYPE_SOFTWARE, 0, PERF_COUNT_SW_PAGE_FAULTS, 0, 0},
      {PERF_TYPE_SOFTWARE, 0, PERF_COUNT_SW_CONTEXT_SWITCHES, 0, 0},
  };
  const TaskEvents opened = OpenEvents(task, events, PerfEventParanoid());
  ::close(go[0]);
  ::close(go[1]);
  ::waitpid(task, nullptr, 0);
  if (opened.results != "13,0,0") GTEST_SKIP() << "no perf events here: " << opened.results;
  ASSERT_EQ(opened.fds.size(), 2u);
  uint64_t values[5] = {};
  ASSERT_EQ(::read(opened.fds[0].get(), values, sizeof(values)), ssize_t{sizeof(values)});
  EXPECT_EQ(values[0], 2u);
  EXPECT_GT(values[2], 0u);
  EXPECT_GT(values[3], 50u) << "page faults of the shell and of what it ran";
  EXPECT_GT(values[4], 0u);
}

}  // namespace
}  // namespace sonde::spank
