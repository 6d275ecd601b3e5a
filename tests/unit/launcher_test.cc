#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "core/text/options.h"
#include "launcher/environment.h"
#include "launcher/high_descriptor.h"
#include "launcher/launch.h"
#include "launcher/lifeline.h"
#include "launcher/preload.h"
#include "launcher/process.h"
#include "launcher/random.h"
#include "launcher/site/site_policy.h"
#include "spank/rendezvous.h"

namespace sonde::launch {
namespace {

using std::chrono::milliseconds;

// Beyond 63 the kernel makes a process with threads wait while it enlarges the table.
TEST(UniqueFd, MovesUpWithinTheFirstTable) {
  UniqueFd fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  launch::MoveUp(fd);
  EXPECT_GE(fd.get(), 16);
  EXPECT_LT(fd.get(), 64);
  EXPECT_EQ(::fcntl(fd.get(), F_GETFD), FD_CLOEXEC);
}

TEST(Preload, LibrariesThatAreThereComeBeforeTheUsersOwn) {
  char made[] = "/tmp/sonde-preload-XXXXXX";
  const std::string at = ::mkdtemp(made);
  const auto touch = [&](const std::string& name) { std::ofstream(at + "/" + name) << ""; };
  std::filesystem::create_directory(at + "/sonde");
  touch("sonde/libsonde-mpi.so");
  const preload::Calls of_mpi = {.mpi = true}, both = {.mpi = true, .io = true};
  EXPECT_EQ(preload::With("own.so", at, both), "own.so") << "without libsonde";
  touch("libsonde.so.1");
  const std::string mpi = at + "/libsonde.so.1:" + at + "/sonde/libsonde-mpi.so";
  EXPECT_EQ(preload::With("", at, both), mpi) << "the other one is not there";
  EXPECT_EQ(preload::With("own.so other.so", at, of_mpi), mpi + ":own.so:other.so");
  EXPECT_EQ(preload::With(mpi + ":own.so", at, of_mpi), mpi + ":own.so");
  EXPECT_EQ(preload::With(mpi + ":own.so", at, {}), "own.so");
  EXPECT_EQ(preload::Without(mpi, at), "");
  EXPECT_EQ(preload::With("own.so", at + ":x", of_mpi), "own.so") << "cannot be written";
  touch("libsonde_functions.so.1");
  const std::string functions = at + "/libsonde.so.1:" + at + "/libsonde_functions.so.1";
  EXPECT_EQ(preload::With("", at, {.functions = true}), functions);
  EXPECT_EQ(preload::Without(functions + ":own.so", at), "own.so");
  std::filesystem::remove_all(at);
}

TEST(Preload, CallsHaveNames) {
  EXPECT_EQ(preload::NamesOf({.mpi = true, .functions = true}), "mpi,functions");
  EXPECT_EQ(preload::NamesOf({}), "");
  EXPECT_EQ(preload::NamesOf(preload::CallsOf("io,x,,mpi")), "mpi,io");
}

TEST(Preload, TheUsersWordOnTheSanitizersOrderStays) {
  EXPECT_EQ(preload::SanitizerOptions(""), "verify_asan_link_order=0");
  EXPECT_EQ(preload::SanitizerOptions("a=1"), "verify_asan_link_order=0:a=1");
  EXPECT_EQ(preload::SanitizerOptions("verify_asan_link_order=1"), "verify_asan_link_order=1");
}

TEST(StepGpus, AreWhatSlurmGaveElseWhatTheProgramMaySee) {
  const auto gpus = [](std::vector<const char*> variables, bool alone = true) {
    variables.push_back(nullptr);
    return std::string(launch::StepGpus(launch::Environment(variables.data()), alone));
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

TEST(Random, KeysDiffer) {
  const auto a = launch::RandomHex<32>(), b = launch::RandomHex<32>();
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_EQ(a->size(), 64u);
  EXPECT_NE(*a, *b);
}

TEST(Lifeline, APeerThatDoesNotReadNeverBlocksTheSender) {
  UniqueFd daemon;
  Result<launch::Lifeline> lifeline = launch::Lifeline::Create(daemon);
  ASSERT_TRUE(lifeline.ok());
  const std::string packet(1000, 'T');
  Status status;
  for (int i = 0; i < 100'000 && status.ok(); ++i) status = lifeline->Send(packet);
  EXPECT_EQ(status.code(), Code::kBusy);
}

TEST(Lifeline, APeerThatIsGoneIsAnErrorAndNoSignal) {
  UniqueFd daemon;
  Result<launch::Lifeline> lifeline = launch::Lifeline::Create(daemon);
  ASSERT_TRUE(lifeline.ok());
  daemon.Reset();
  EXPECT_FALSE(lifeline->Send("X").ok());
  std::string packet;
  EXPECT_EQ(lifeline->Receive(packet, launch::Deadline(milliseconds(5000))),
            launch::Lifeline::Event::kEnd);
}

TEST(Lifeline, WaitsAreBounded) {
  UniqueFd daemon;
  Result<launch::Lifeline> lifeline = launch::Lifeline::Create(daemon);
  ASSERT_TRUE(lifeline.ok());
  std::string packet;
  EXPECT_EQ(lifeline->Receive(packet, launch::Deadline(milliseconds(0))),
            launch::Lifeline::Event::kTimeout);
  ASSERT_EQ(::send(daemon.get(), "Rtext", 5, 0), 5);
  EXPECT_EQ(lifeline->Receive(packet, launch::Deadline(milliseconds(0))),
            launch::Lifeline::Event::kPacket);
  EXPECT_EQ(packet, "Rtext");
}

// As in Slurm's contained callbacks, whose children have copies of our descriptors.
TEST(Lifeline, FinishInAChildIsSeenThoughWeHoldTheDescriptor) {
  UniqueFd daemon;
  Result<launch::Lifeline> lifeline = launch::Lifeline::Create(daemon);
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
std::string Output(launch::Lifeline& lifeline) {
  std::string all, packet;
  const launch::Deadline deadline(milliseconds(10'000));
  while (lifeline.Receive(packet, deadline) == launch::Lifeline::Event::kPacket) all += packet;
  return all;
}

launch::Process Shell(const std::string& script) {
  return {"/bin/sh", {"sh", "-c", script}, {"PATH=/usr/bin:/bin"}, -1, nullptr};
}

TEST(Start, TheDaemonHasItsOwnDescriptorsAndSession) {
  const UniqueFd stray(::open("/etc/passwd", O_RDONLY));  // not closed on exec
  Result<spank::Listener> listener = spank::Listen({}, std::nullopt);
  ASSERT_TRUE(stray && listener.ok());
  launch::Process process = Shell("");
  process.arguments[2] =
      "exec /usr/bin/python3 -c \"import os, socket\n"
      "s = socket.socket(fileno=3)\n"
      "fds = [n for n in range(4096) if os.path.exists(f'/proc/self/fd/{n}')]\n"
      "facts = [fds, os.readlink('/proc/self/fd/0'), os.getcwd(), os.getsid(0) == os.getpid(), "
      "oct(os.umask(0)), socket.socket(fileno=4).getsockname()[1]]\n"
      "s.send(repr(facts).encode())\"";
  process.listen_fd = listener->fd.get();
  Result<launch::Daemon> daemon = Start(process);
  ASSERT_TRUE(daemon.ok());
  EXPECT_EQ(Output(daemon->lifeline), "[[0, 1, 2, 3, 4], '/dev/null', '/', True, '0o77', " +
                                          std::to_string(listener->port) + "]");
}

TEST(Start, LowDescriptorsOfTheLauncherDoNotGetInTheWay) {
  // With 0 to 9 closed, every descriptor that is made would land where the daemon's go.
  const pid_t child = ::fork();
  if (child == 0) {
    for (int fd = 0; fd < 10; ++fd) ::close(fd);
    launch::Process process = Shell("");
    process.arguments[2] =
        "exec /usr/bin/python3 -c \"import socket; socket.socket(fileno=3).send(b'here')\"";
    Result<launch::Daemon> daemon = Start(process);
    ::_exit(daemon.ok() && Output(daemon->lifeline) == "here" ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(Start, TheApplicationCanConnectBeforeTheDaemonRuns) {
  const std::string name = "sonde-test/" + std::to_string(::getpid());
  launch::Process process = Shell(
      "exec /usr/bin/python3 -c \"import socket\n"
      "s = socket.socket(fileno=5)\n"
      "s.setblocking(True)\n"
      "socket.socket(fileno=3).send(s.accept()[0].recv(100))\"");
  process.application = name;
  Result<launch::Daemon> daemon = Start(process);
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
  launch::Process process = Shell("");
  process.path = "/nonexistent/sonded";
  const Result<launch::Daemon> daemon = Start(process);
  ASSERT_FALSE(daemon.ok());
  EXPECT_EQ(daemon.status().message(), "execute /nonexistent/sonded: No such file or directory");
}

TEST(Start, NoChildIsLeftToTheLauncher) {
  Result<launch::Daemon> daemon = Start(Shell("exit 0"));
  ASSERT_TRUE(daemon.ok());
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

TEST(Start, AHangingDaemonCanBeEndedWithAllOfItsSession) {
  // The second process tells its number, so that it can be looked for.
  Result<launch::Daemon> daemon =
      Start(Shell("sleep 1000 & exec /usr/bin/python3 -c \"import socket, time\n"
                  "socket.socket(fileno=3).send(b'$!')\n"
                  "time.sleep(1000)\""));
  ASSERT_TRUE(daemon.ok());
  std::string packet;
  ASSERT_EQ(daemon->lifeline.Receive(packet, launch::Deadline(milliseconds(10'000))),
            launch::Lifeline::Event::kPacket);
  const launch::ProcessId second = launch::Identify(std::stoi(packet));
  ASSERT_NE(second.pid, 0);
  EXPECT_FALSE(launch::WaitForEnd(daemon->process, launch::Deadline(milliseconds(0))));
  launch::KillSession(daemon->process);
  EXPECT_TRUE(launch::WaitForEnd(daemon->process, launch::Deadline(milliseconds(10'000))));
  EXPECT_TRUE(launch::WaitForEnd(second, launch::Deadline(milliseconds(10'000))));
}

// A command for alarms that has put a process into a session of its own; the daemon is killed.
TEST(KillOrphans, EndsWhatAKilledDaemonLeftAndNothingElse) {
  Result<launch::Daemon> daemon =
      Start(Shell("self=$$.$(cut -d' ' -f22 /proc/$$/stat)\n"
                  "SONDE_CHILD_OF=$self setsid sh -c 'sleep 1000; true' & left=$!\n"
                  "SONDE_CHILD_OF=$self.1 setsid sleep 1000 & other=$!\n"
                  "exec /usr/bin/python3 -c \"import socket, time\n"
                  "socket.socket(fileno=3).send(b'$left $other')\n"
                  "time.sleep(1000)\""));
  ASSERT_TRUE(daemon.ok());
  std::string packet;
  ASSERT_EQ(daemon->lifeline.Receive(packet, launch::Deadline(milliseconds(10'000))),
            launch::Lifeline::Event::kPacket);
  size_t blank = 0;
  const launch::ProcessId left = launch::Identify(std::stoi(packet, &blank));
  const launch::ProcessId other = launch::Identify(std::stoi(packet.substr(blank)));
  launch::KillSession(daemon->process);
  ASSERT_TRUE(launch::WaitForEnd(daemon->process, launch::Deadline(milliseconds(10'000))));
  EXPECT_FALSE(launch::WaitForEnd(left, launch::Deadline(milliseconds(0))));
  launch::KillOrphans(daemon->process, ::getuid() + 1, launch::Deadline(milliseconds(10'000)));
  EXPECT_FALSE(launch::WaitForEnd(left, launch::Deadline(milliseconds(0))));
  launch::KillOrphans(daemon->process, ::getuid(), launch::Deadline(milliseconds(10'000)));
  EXPECT_TRUE(launch::WaitForEnd(left, launch::Deadline(milliseconds(10'000))));
  EXPECT_FALSE(launch::WaitForEnd(other, launch::Deadline(milliseconds(0))));
  launch::KillSession(other);
}

TEST(ProcessId, ANumberThatWasGivenAgainIsAnotherProcess) {
  const launch::ProcessId own = launch::Identify(::getpid());
  ASSERT_EQ(own.pid, ::getpid());
  EXPECT_FALSE(launch::WaitForEnd(own, launch::Deadline(milliseconds(0))));
  const launch::ProcessId former{own.pid, own.start - 1};
  EXPECT_TRUE(launch::WaitForEnd(former, launch::Deadline(milliseconds(0))));
  launch::KillSession(former);  // would end this test
  EXPECT_TRUE(launch::WaitForEnd({}, launch::Deadline(milliseconds(0))));
}

TEST(Start, TheEndsAreThereBeforeTheDaemonIs) {
  const std::string name = "sonde-test/ends." + std::to_string(::getpid());
  Result<launch::Ends> ends = launch::MakeEnds();
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
  launch::Process process = Shell(
      "exec /usr/bin/python3 -c \"import socket\n"
      "s = socket.socket(fileno=3)\n"
      "s.setblocking(True)\n"
      "s.send(s.recv(100))\"");
  process.application = name;
  const Result<launch::ProcessId> started = Start(process, *ends);
  ASSERT_TRUE(started.ok());
  EXPECT_TRUE(connected());
  ends->daemon.Reset();
  EXPECT_EQ(Output(ends->lifeline), "first");
  EXPECT_TRUE(launch::WaitForEnd(*started, launch::Deadline(milliseconds(10'000))));
}

TEST(Start, TheDaemonBecomesTheUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const launch::Credentials nobody{65534, 65534, {65534, 4321}};
  launch::Process process = Shell("");
  process.become = &nobody;
  process.arguments[2] =
      "exec /usr/bin/python3 -c \"import os, socket\n"
      "facts = [os.getresuid(), os.getresgid(), sorted(os.getgroups())]\n"
      "socket.socket(fileno=3).send(repr(facts).encode())\"";
  Result<launch::Daemon> daemon = Start(process);
  ASSERT_TRUE(daemon.ok());
  EXPECT_EQ(Output(daemon->lifeline),
            "[(65534, 65534, 65534), (65534, 65534, 65534), [4321, 65534]]");
}

}  // namespace
}  // namespace sonde::launch
