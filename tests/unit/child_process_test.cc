// What a daemon starts ends with it, however it ends.
#include "daemon/child_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "core/unique_fd.h"

namespace sonde::child_process_test {
namespace {

struct Pipe {
  Pipe() {
    int fds[2];
    EXPECT_EQ(pipe2(fds, O_CLOEXEC), 0);
    read_end.Reset(fds[0]);
    write_end.Reset(fds[1]);
  }
  UniqueFd read_end, write_end;
};

// All that is written until everybody who could write is gone; "" and a failure after 20 s.
std::string ReadToEnd(int fd) {
  std::string text;
  char buffer[512];
  for (;;) {
    pollfd ready{fd, POLLIN, 0};
    if (poll(&ready, 1, 20'000) != 1) {
      ADD_FAILURE() << "somebody holds the pipe: " << text;
      return "";
    }
    const ssize_t size = read(fd, buffer, sizeof(buffer));
    if (size <= 0) return text;
    text.append(buffer, static_cast<size_t>(size));
  }
}

ChildProgram Shell(const std::string& script, int output) {
  ChildProgram child;
  child.program = "sh";
  child.arguments = {"sh", "-c", script};
  child.descriptors = {{output, STDOUT_FILENO}};
  return child;
}

// Runs `body` in a process that stands for a daemon, which then ends in the way asked for.
template <typename Body>
void InDaemon(Body&& body) {
  const pid_t daemon = fork();
  if (daemon == 0) {
    body();
    _exit(0);
  }
  int status = 0;
  EXPECT_EQ(waitpid(daemon, &status, 0), daemon);
}

TEST(ChildProcess, HasTheDescriptorsThatItWasGiven) {
  Pipe pipe;
  ChildProgram child = Shell("echo \"$NAME\"; cat <&7", pipe.write_end.get());
  Pipe input;
  ASSERT_EQ(write(input.write_end.get(), "told\n", 5), 5);
  input.write_end.Reset();
  child.descriptors.emplace_back(input.read_end.get(), 7);
  child.environment = {"NAME=a name", "PATH=/usr/bin:/bin"};
  const Result<pid_t> pid = StartChild(child);
  ASSERT_TRUE(pid.ok());
  pipe.write_end.Reset();
  EXPECT_EQ(ReadToEnd(pipe.read_end.get()), "a name\ntold\n");
  waitpid(*pid, nullptr, 0);
}

// Libraries open descriptors that are not closed on exec.
TEST(ChildProcess, HasNoOtherDescriptors) {
  Pipe pipe, strays;
  InDaemon([&] {
    // Higher than those of this test, wherever it runs.
    for (const int stray : {50, 90, 300}) dup2(strays.read_end.get(), stray);
    ChildProgram child = Shell("exec ls /proc/self/fd", pipe.write_end.get());
    child.descriptors.emplace_back(strays.write_end.get(), 7);
    const Result<pid_t> pid = StartChild(child);
    if (!pid.ok() || waitpid(*pid, nullptr, 0) != *pid) _exit(1);
  });
  pipe.write_end.Reset();
  EXPECT_EQ(ReadToEnd(pipe.read_end.get()), "0\n1\n2\n3\n7\n") << "3 is that of ls";
}

TEST(ChildProcess, WhatCannotBeStartedIsSaid) {
  ChildProgram child;
  child.program = "/nonexistent/program";
  child.arguments = {"program"};
  const Result<pid_t> pid = StartChild(child);
  ASSERT_FALSE(pid.ok());
  EXPECT_EQ(pid.status().message(), "start /nonexistent/program: No such file or directory");
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "no zombie";
}

TEST(ChildProcess, OneOnThePathThatMayNotBeExecutedIsSaid) {
  const std::string directory = testing::TempDir() + "path-" + std::to_string(getpid());
  ASSERT_EQ(mkdir(directory.c_str(), 0700), 0);
  const std::string file = directory + "/a-program";
  const UniqueFd made(open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  const std::string path = getenv("PATH");
  setenv("PATH", (directory + ":/nonexistent").c_str(), 1);
  ChildProgram child;
  child.program = "a-program";
  child.arguments = {"a-program"};
  EXPECT_EQ(StartChild(child).status().message(), "start a-program: Permission denied");
  setenv("PATH", path.c_str(), 1);
  unlink(file.c_str());
  rmdir(directory.c_str());
}

TEST(ChildProcess, IsKilledWithADaemonThatIsKilled) {
  Pipe pipe;
  InDaemon([&] {
    if (!StartChild(Shell("exec sleep 1000", pipe.write_end.get())).ok()) _exit(1);
    kill(getpid(), SIGKILL);
  });
  pipe.write_end.Reset();
  EXPECT_EQ(ReadToEnd(pipe.read_end.get()), "");
}

TEST(ChildProcess, OneThatMayStayGoesOn) {
  Pipe pipe, go;
  InDaemon([&] {
    ChildProgram child = Shell("read word <&7; echo still here", pipe.write_end.get());
    child.descriptors.emplace_back(go.read_end.get(), 7);
    child.may_outlive_us = true;
    if (!StartChild(child).ok()) _exit(1);
  });
  pipe.write_end.Reset();
  ASSERT_EQ(write(go.write_end.get(), "go\n", 3), 3);
  EXPECT_EQ(ReadToEnd(pipe.read_end.get()), "still here\n");
}

TEST(ChildProcess, NamesTheDaemonThatItEndsWith) {
  Pipe pipe;
  InDaemon([&] {
    ChildProgram first = Shell("echo $SONDE_CHILD_OF", pipe.write_end.get());
    first.environment = {};
    Result<pid_t> child = StartChild(first);
    if (!child.ok() || waitpid(*child, nullptr, 0) != *child) _exit(1);
    // An acting head is the child of a node's daemon.
    setenv("SONDE_CHILD_OF", "7.8", 1);
    child = StartChild(Shell("echo $SONDE_CHILD_OF; echo $PPID", pipe.write_end.get()));
    if (!child.ok() || waitpid(*child, nullptr, 0) != *child) _exit(1);
  });
  pipe.write_end.Reset();
  std::istringstream lines(ReadToEnd(pipe.read_end.get()));
  std::string own, outer, daemon;
  lines >> own >> outer >> daemon;
  EXPECT_TRUE(own.starts_with(daemon + ".")) << own << " of " << daemon;
  EXPECT_EQ(outer, "7.8");
}

// A command for alarms may leave processes of its own behind, in sessions of their own.
TEST(ChildProcess, WhatChildrenLeaveBehindEndsToo) {
  Pipe pipe;
  InDaemon([&] {
    AdoptOrphans();
    const std::string script = "setsid sh -c 'sleep 1000; true' & sleep 1000 & wait";
    const Result<pid_t> first = StartChild(Shell(script, pipe.write_end.get()));
    const Result<pid_t> second =
        StartChild(Shell("setsid sleep 1000 & exit 0", pipe.write_end.get()));
    if (!first.ok() || !second.ok()) _exit(1);
    waitpid(*second, nullptr, 0);
    EndChildren();
    if (waitpid(-1, nullptr, WNOHANG) != -1) _exit(1);
  });
  pipe.write_end.Reset();
  EXPECT_EQ(ReadToEnd(pipe.read_end.get()), "");
}

}  // namespace
}  // namespace sonde::child_process_test
