// A daemon is a process of the user's and may send its launcher open files. The last one to drop a
// file may have to wait for as long as the user likes.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <string>

#include "core/descriptor_message.h"
#include "launcher/last_words.h"
#include "launcher/lifeline.h"
#include "tests/unit/lingering_socket.h"

namespace sonde::launch {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr int kLinger = 10;  // s; a wait for it fails a test
constexpr seconds kQuick{kLinger / 2};

// A lifeline as before Linux 6.16, where nobody can refuse descriptors. A packet with one waits in
// it, the last of two if there is a first.
struct Sent {
  explicit Sent(const std::string& packet, bool first = false) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return;
    lifeline = Lifeline(UniqueFd(ends[0]));
    daemon = UniqueFd(ends[1]);
    if (first) ::send(daemon.get(), "", 0, MSG_NOSIGNAL);
    const int fds[] = {lingering.get()};
    sent = SendWithDescriptors(daemon.get(), packet, fds, Patience::kNone).ok();
    lingering.DropOwn();
  }

  LingeringSocket lingering{kLinger};
  Lifeline lifeline;
  UniqueFd daemon;
  bool sent = false;
};

TEST(SentDescriptors, AreNotReceived) {
  for (const std::string packet : {"Dstate=done\n", ""}) {
    Sent sent(packet);
    ASSERT_TRUE(sent.sent);
    ASSERT_EQ(::send(sent.daemon.get(), "Dstate=done\n", 12, MSG_NOSIGNAL), 12);
    const auto begin = steady_clock::now();
    LastWords words;
    words.ReadAll(sent.lifeline, -1);
    EXPECT_LT(steady_clock::now() - begin, kQuick) << packet;
    sent.lifeline.End();
    const auto failure = words.Judge(true);
    ASSERT_TRUE(failure) << packet;
    EXPECT_EQ(failure->kind, FailureKind::kReported);
    EXPECT_EQ(failure->reason, "it sent its launcher open files, which a launcher does not take");
    EXPECT_FALSE(words.orderly());
  }
}

// An empty packet in front of it looks like the end of the connection.
TEST(SentDescriptors, AreNotDroppedWhenTheLifelineEnds) {
  for (const bool after_empty : {false, true}) {
    Sent sent("Rtext", after_empty);
    ASSERT_TRUE(sent.sent);
    const auto begin = steady_clock::now();
    LastWords words;
    if (after_empty) words.ReadAll(sent.lifeline, -1);
    sent.lifeline.End();
    EXPECT_LT(steady_clock::now() - begin, kQuick) << after_empty;
    char byte;
    EXPECT_EQ(::recv(sent.daemon.get(), &byte, 1, MSG_DONTWAIT), 0) << "the daemon sees the end";
    EXPECT_LT(::send(sent.daemon.get(), "x", 1, MSG_NOSIGNAL), 0) << "nothing more comes";
  }
}

// The kernel waits in no process that ends.
TEST(SentDescriptors, DoNotHoldUpTheEndOfTheLauncher) {
  Sent sent("Rtext");
  ASSERT_TRUE(sent.sent);
  int word[2];
  ASSERT_EQ(::pipe2(word, O_CLOEXEC), 0);
  const UniqueFd told(word[0]), tell(word[1]);
  const pid_t launcher = ::fork();
  if (launcher == 0) {
    char go;
    ::_exit(::read(told.get(), &go, 1) == 1 ? 0 : 1);
  }
  sent.lifeline = Lifeline();  // the other process has it still
  const auto begin = steady_clock::now();
  ASSERT_EQ(::write(tell.get(), "x", 1), 1);
  int status = 1;
  ::waitpid(launcher, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_LT(steady_clock::now() - begin, kQuick);
}

TEST(SentDescriptors, AreRefusedWhereTheKernelCan) {
  UniqueFd daemon;
  Result<Lifeline> lifeline = Lifeline::Create(daemon);
  ASSERT_TRUE(lifeline.ok());
  constexpr int kPassRights = 83;  // SO_PASSRIGHTS, Linux 6.16
  int passes = 1;
  socklen_t size = sizeof(passes);
  if (::getsockopt(daemon.get(), SOL_SOCKET, kPassRights, &passes, &size) != 0) {
    GTEST_SKIP() << "this kernel cannot";
  }
  EXPECT_EQ(passes, 1) << "the daemon gets those of its events";
  const int fds[] = {STDIN_FILENO};
  EXPECT_FALSE(SendWithDescriptors(daemon.get(), "Rtext", fds, Patience::kNone).ok());
  EXPECT_TRUE(SendWithDescriptors(daemon.get(), "Rtext", {}, Patience::kNone).ok());
  EXPECT_TRUE(lifeline->Send("T", fds).ok());
}

}  // namespace
}  // namespace sonde::launch
