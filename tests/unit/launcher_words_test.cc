// What a launcher learns of a daemon's end, and what it counts.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "launcher/error_stream.h"
#include "launcher/last_words.h"
#include "launcher/process.h"
#include "launcher/site/node_counters.h"
#include "tests/unit/temp_dir.h"

namespace sonde::launch {
namespace {

using std::chrono::milliseconds;
using testing::EndsWith;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::StartsWith;

LastWords Words(std::initializer_list<const char*> packets) {
  LastWords words;
  for (const char* packet : packets) words.Take(packet);
  return words;
}

TEST(LastWords, ADaemonThatSaidItWasDoneHasNotFailed) {
  EXPECT_FALSE(Words({"Dstate=up\n", "Rreport", "Dstate=done\n"}).Judge(true));
  EXPECT_FALSE(Words({"Dstate=up\n", "Dstate=done\n"}).Judge(false));
}

TEST(LastWords, AReasonIsTold) {
  const auto failed =
      Words({"Dstate=failed\nreason=launch message: host is missing\n"}).Judge(false);
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->kind, FailureKind::kReported);
  EXPECT_EQ(failed->reason, "launch message: host is missing");
  const auto stored = Words({"Dstate=up\n", "Dstate=done\nreason=not stored\n"}).Judge(true);
  ASSERT_TRUE(stored);
  EXPECT_EQ(stored->kind, FailureKind::kProfile);
}

TEST(LastWords, AReasonIsShortAndOneLine) {
  const std::string packet = "Dstate=failed\nreason=\033" + std::string(5000, 'x') + "\n";
  const auto failed = Words({packet.c_str()}).Judge(false);
  ASSERT_TRUE(failed);
  EXPECT_THAT(failed->reason, StartsWith("?xxx"));
  EXPECT_LE(failed->reason.size(), LastWords::kMost + 3);
}

TEST(LastWords, AnEndWithoutAWordIsAKill) {
  for (const bool asked : {false, true}) {
    const auto failed = Words({"Dstate=up\n"}).Judge(asked);
    ASSERT_TRUE(failed);
    EXPECT_EQ(failed->kind, FailureKind::kKilled);
  }
  EXPECT_TRUE(Words({}).Judge(false));
}

// By a signal, before all that it had started was gone.
TEST(LastWords, ADaemonThatDiesAfterItWasDoneWasKilled) {
  const LastWords words = Words({"Dstate=up\nlast=ended\n", "Dstate=done\n"});
  EXPECT_FALSE(words.orderly());
  const auto failed = words.Judge(true);
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->kind, FailureKind::kKilled);
  const LastWords ended = Words({"Dstate=up\nlast=ended\n", "Dstate=done\n", "Dstate=ended\n"});
  EXPECT_TRUE(ended.orderly());
  EXPECT_FALSE(ended.Judge(true));
}

TEST(LastWords, AnOlderDaemonThatWasDoneHasEndedInOrder) {
  EXPECT_TRUE(Words({"Dstate=up\n", "Dstate=done\n"}).orderly());
  EXPECT_FALSE(Words({"Dstate=up\n"}).orderly());
  EXPECT_FALSE(Words({}).orderly());
}

// One of an older release says nothing when it ends, and logs to its stderr.
TEST(LastWords, AnOlderDaemonThatEndedWhenItWasAskedHasNotFailed) {
  EXPECT_FALSE(Words({"Rreport"}).Judge(true));
  const Result<Ends> ends = MakeEnds();
  ASSERT_TRUE(ends.ok());
  ASSERT_EQ(::write(ends->stderr_end.get(), "warning", 7), 7);
  LastWords words;
  words.ReadErrors(ends->errors.get());
  EXPECT_FALSE(words.Judge(true));
  EXPECT_TRUE(words.Judge(false));
}

// The words of a daemon that ran `script`, and its end.
std::optional<Failure> EndOf(const std::string& script) {
  Process shell;
  shell.path = "/bin/sh";
  shell.arguments = {"sh", "-c", script};
  shell.environment = {"PATH=/usr/bin:/bin"};
  Result<Daemon> daemon = Start(shell);
  EXPECT_TRUE(daemon.ok());
  EXPECT_TRUE(WaitForEnd(daemon->process, Deadline(milliseconds(10'000))));
  LastWords words;
  words.ReadAll(daemon->lifeline, daemon->errors.get());
  return words.Judge(false);
}

TEST(LastWords, WhatTheDynamicLinkerSaysIsHeard) {
  const auto failed = EndOf("exec /bin/sh -c 'echo sonded: libx.so: cannot open >&2; exit 127'");
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->kind, FailureKind::kCrashed);
  EXPECT_EQ(failed->reason, "sonded: libx.so: cannot open");
}

// A step that is too short for a broken daemon: it was asked to finish before it was gone.
TEST(LastWords, OfABrokenDaemonTheLinkerIsHeardInShortStepsToo) {
  const auto judge = [](const std::string& errors) {
    Result<Ends> ends = MakeEnds();
    EXPECT_TRUE(ends.ok());
    const int daemon = ends->stderr_end.get();
    EXPECT_EQ(::write(daemon, errors.data(), errors.size()), static_cast<ssize_t>(errors.size()));
    ends->stderr_end.Reset();
    LastWords words;
    words.ReadErrors(ends->errors.get());
    return words.Judge(true);
  };
  EXPECT_FALSE(judge("sonded[7] info: a line of the log of an older daemon\n"));
  const auto failed = judge("sonded: error while loading shared libraries: libx.so: none\n");
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->kind, FailureKind::kCrashed);
}

// Nobody reads while it writes: it goes on, and is not killed by a signal.
TEST(LastWords, ADaemonThatSaysMuchIsNotHeldUp) {
  const auto failed = EndOf(
      "exec /usr/bin/python3 -c \"import os, socket\n"
      "lost = 0\n"
      "for _ in range(40):\n"
      "  try: os.write(2, b'x' * 4095 + b'\\n')\n"
      "  except BlockingIOError: lost += 1\n"
      "socket.socket(fileno=3).send(b'Dstate=failed\\nreason=lost %d\\n' % lost)\"");
  ASSERT_TRUE(failed);
  EXPECT_THAT(failed->reason, MatchesRegex("lost [1-9][0-9]*"));
}

TEST(LastWords, OfMuchTheEndIsKept) {
  const auto failed = EndOf("for i in 1 2 3 4 5 6 7 8 9; do printf '%200s\\n' $i >&2; done");
  ASSERT_TRUE(failed);
  EXPECT_THAT(failed->reason, EndsWith("9"));
  EXPECT_LE(failed->reason.size(), LastWords::kMost + 3);
}

Status CountOnNode(const std::string& directory, const std::string& node,
                   std::optional<FailureKind> failure, time_t now) {
  NodeCounting counting;
  SONDE_RETURN_IF_ERROR(counting.Open(directory, node));
  return counting.Count(failure, now);
}

class NodeCountersTest : public testing::Test {
 protected:
  std::string Text() const {
    std::stringstream text;
    text << std::ifstream(state_ + "/n1.prom").rdbuf();
    return text.str();
  }

  TempDir dir_;
  const std::string state_ = dir_.path() + "/state";
};

TEST_F(NodeCountersTest, StartsAndFailuresAddUpInTheFormatOfPrometheus) {
  const mode_t mask = umask(077);
  ASSERT_TRUE(CountOnNode(state_, "n1", std::nullopt, 1).ok());
  ASSERT_TRUE(CountOnNode(state_, "n1", std::nullopt, 2).ok());
  ASSERT_TRUE(CountOnNode(state_, "n1", FailureKind::kKilled, 1234).ok());
  umask(mask);
  EXPECT_THAT(Text(), HasSubstr("# TYPE sonde_daemon_starts_total counter\n"
                                "sonde_daemon_starts_total{node=\"n1\"} 2\n"));
  EXPECT_THAT(Text(), HasSubstr("sonde_daemon_failures_total{node=\"n1\",reason=\"killed\"} 1\n"));
  EXPECT_THAT(Text(), HasSubstr("sonde_daemon_failures_total{node=\"n1\",reason=\"start\"} 0\n"));
  EXPECT_THAT(Text(), HasSubstr("sonde_daemon_last_failure_timestamp_seconds{node=\"n1\","
                                "reason=\"killed\"} 1234\n"));
  struct stat info {};
  ASSERT_EQ(stat(state_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0755u);
  ASSERT_EQ(stat((state_ + "/n1.prom").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0644u);
}

TEST_F(NodeCountersTest, APlaceThatOthersMayChangeIsNotWrittenTo) {
  const std::string real = dir_.path() + "/real";
  std::filesystem::create_directory(real);
  std::filesystem::create_directory_symlink(real, state_);
  EXPECT_FALSE(CountOnNode(state_, "n1", std::nullopt, 1).ok()) << "a link";
  ASSERT_EQ(::chmod(real.c_str(), 01777), 0);
  EXPECT_EQ(CountOnNode(real, "n1", std::nullopt, 1).code(), Code::kPermission);
  EXPECT_TRUE(std::filesystem::is_empty(real));
  EXPECT_FALSE(CountOnNode(dir_.path(), "../n1", std::nullopt, 1).ok());
  EXPECT_FALSE(CountOnNode(dir_.path(), "n\"1", std::nullopt, 1).ok());
}

TEST_F(NodeCountersTest, ACountThatWouldHaveToWaitIsLost) {
  ASSERT_TRUE(CountOnNode(state_, "n1", std::nullopt, 1).ok());
  const UniqueFd lock(::open((state_ + "/.n1.lock").c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(::flock(lock.get(), LOCK_EX), 0);
  EXPECT_EQ(CountOnNode(state_, "n1", std::nullopt, 1).code(), Code::kBusy);
  EXPECT_EQ(ReadCounters(Text()).starts, 1u);
}

TEST(NodeCounters, AnyTextCanBeRead) {
  for (const char* text :
       {"", "\n\n", "x", "sonde_daemon_starts_total{} ", "}{} 1\n", "a} 99999999999999999999"}) {
    EXPECT_EQ(ReadCounters(text).starts, 0u) << text;
  }
}

// Runs `f` in a child that may change its descriptors.
template <typename F>
bool InChild(F&& f) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(f() ? 0 : 1);
  int status = 1;
  ::waitpid(child, &status, 0);
  return status == 0;
}

TEST(ErrorStream, IsOpenAsLongAsItIsTheSameFile) {
  const auto put = [](const char* path, int flags) {
    const int fd = ::open(path, flags);
    return fd >= 0 && (fd == 2 || ::dup2(fd, 2) == 2);
  };
  EXPECT_TRUE(InChild([&] {
    if (!put("/dev/null", O_WRONLY)) return false;
    const ErrorStream stream;
    if (!stream.open()) return false;
    ::close(2);
    if (stream.open()) return false;
    return put("/dev/full", O_WRONLY) && !stream.open();
  }));
}

TEST(ErrorStream, WhatTheProcessOpenedItselfIsNone) {
  EXPECT_TRUE(InChild([] {
    ::close(2);
    const ErrorStream closed;
    if (closed.open()) return false;
    // Closed on exec, as Slurm's own sockets.
    return ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0) == 2 && !closed.open() &&
           !ErrorStream().open();
  }));
}

}  // namespace
}  // namespace sonde::launch
