// Starting a daemon ends in time, whatever the job's user or a file system does to it meanwhile.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <utility>

#include "core/descriptor_message.h"
#include "core/unique_fd.h"
#include "launcher/process.h"
#include "tests/unit/caught_calls.h"
#include "tests/unit/in_child.h"
#include "tests/unit/lingering_socket.h"

namespace sonde::launch {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// The program is about to be executed, and is not: `stop`: as if the user had stopped the process,
// otherwise as if the file system did not answer. A start that waits is ended after a while.
class FrozenExec {
 public:
  explicit FrozenExec(
      bool stop, std::function<void()> meanwhile = [] {})
      : calls_(CatchCalls({SYS_execve})) {
    thread_ = std::thread([this, stop, meanwhile = std::move(meanwhile)] {
      pollfd ready{calls_.get(), POLLIN, 0};
      seccomp_notif call{};
      if (::poll(&ready, 1, 10'000) != 1) return;
      if (::ioctl(calls_.get(), SECCOMP_IOCTL_NOTIF_RECV, &call) != 0) return;
      const auto pid = static_cast<pid_t>(call.pid);
      process_ = Identify(pid);
      if (stop) ::kill(pid, SIGSTOP);
      meanwhile();
      frozen_ = true;
      for (int i = 0; i < 1000 && !over_; ++i) ::poll(nullptr, 0, 10);
      if (!over_) ::kill(pid, SIGKILL);
    });
  }
  ~FrozenExec() {
    over_ = true;
    thread_.join();
  }
  bool frozen() const { return frozen_; }
  const ProcessId& process() const { return process_; }

 private:
  const UniqueFd calls_;
  std::atomic<bool> frozen_ = false, over_ = false;
  ProcessId process_;
  std::thread thread_;
};

bool HasChildren() { return ::waitpid(-1, nullptr, WNOHANG | __WALL) >= 0 || errno != ECHILD; }

// In a process of its own, for the catching of calls stays.
void ExpectEndInTime(bool stop) {
  const pid_t child = ::fork();
  if (child == 0) {
    {
      const FrozenExec exec(stop);
      const auto begin = steady_clock::now();
      Process shell{.path = "/bin/sh", .arguments = {"sh", "-c", "exit 0"}, .environment = {}};
      shell.patience = milliseconds(200);
      const Result<Daemon> daemon = Start(shell);
      EXPECT_LT(steady_clock::now() - begin, milliseconds(5000));
      EXPECT_TRUE(exec.frozen());
      EXPECT_EQ(daemon.status().code(), Code::kTimeout);
      EXPECT_EQ(daemon.status().message(),
                "start /bin/sh: it has not begun after 200 ms and is killed");
      EXPECT_TRUE(WaitForEnd(exec.process(), Deadline(milliseconds(5000))));
      EXPECT_FALSE(HasChildren());
    }
    ::_exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(FrozenStart, ADaemonThatItsUserStopsBeforeItRunsHoldsNobodyUp) { ExpectEndInTime(true); }

TEST(FrozenStart, AFileSystemThatDoesNotAnswerHoldsNobodyUp) { ExpectEndInTime(false); }

// Connects to the application's socket of that name.
UniqueFd Connect(const std::string& name) {
  UniqueFd program(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  EXPECT_EQ(::connect(program.get(), reinterpret_cast<const sockaddr*>(&address), length), 0);
  return program;
}

// The user's programs may connect as soon as the socket listens, and send an open file whose last
// owner has to wait.
TEST(FrozenStart, WhatIsSentToASocketThatNobodyAcceptsAtHoldsNobodyUp) {
  const int end = InChild([] {
    const std::string name = "sonde-test/frozen." + std::to_string(::getpid());
    LingeringSocket lingering(10);
    UniqueFd program;
    const FrozenExec exec(true, [&] {
      program = Connect(name);
      const int fds[] = {lingering.get()};
      EXPECT_TRUE(SendWithDescriptors(program.get(), "hello", fds, Patience::kNone).ok());
      lingering.DropOwn();
    });
    const auto begin = steady_clock::now();
    Process shell{.path = "/bin/sh", .arguments = {"sh", "-c", "exit 0"}, .environment = {}};
    shell.application = name;
    shell.patience = milliseconds(200);
    EXPECT_EQ(Start(shell).status().code(), Code::kTimeout);
    EXPECT_LT(steady_clock::now() - begin, milliseconds(5000));
    EXPECT_TRUE(exec.frozen());
  });
  EXPECT_EQ(end, 0);
}

std::string OomScore() {
  std::string score;
  std::ifstream("/proc/self/oom_score_adj") >> score;
  return score;
}

// The kernel gives all processes that share memory one score, but for those in vfork().
TEST(Start, WhenMemoryIsShortTheDaemonGoesAndNotItsLauncher) {
  const std::string before = OomScore();
  Process shell{.path = "/usr/bin/python3",
                .arguments = {"python3", "-c",
                              "import socket\n"
                              "score = open('/proc/self/oom_score_adj', 'rb').read()\n"
                              "socket.socket(fileno=3).send(score)"},
                .environment = {}};
  shell.placement.oom_score = 987;
  Result<Daemon> daemon = Start(shell);
  ASSERT_TRUE(daemon.ok());
  std::string score;
  ASSERT_EQ(daemon->lifeline.Receive(score, Deadline(milliseconds(10'000))),
            Lifeline::Event::kPacket);
  EXPECT_EQ(score, "987\n");
  EXPECT_EQ(OomScore(), before);
}

}  // namespace
}  // namespace sonde::launch
