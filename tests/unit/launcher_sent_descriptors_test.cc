// A daemon is a process of the user's, which may hold up whoever reads what it says: it may send
// its launcher open files, the last one to drop which has to wait for as long as the user likes;
// and it may stop in the middle of writing.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>

#include "core/descriptor_message.h"
#include "launcher/last_words.h"
#include "launcher/lifeline.h"
#include "launcher/process.h"
#include "launcher/user_socket.h"
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

TEST(SentDescriptors, OnADaemonsStderrAreNotTakenEither) {
  Result<Ends> ends = MakeEnds();
  ASSERT_TRUE(ends.ok());
  constexpr int kPassRights = 83, kAny = 1;
  ::setsockopt(ends->errors.get(), SOL_SOCKET, kPassRights, &kAny, sizeof(kAny));
  LingeringSocket lingering(kLinger);
  const int fds[] = {lingering.get()};
  ASSERT_EQ(::send(ends->stderr_end.get(), "first", 5, MSG_NOSIGNAL), 5);
  ASSERT_TRUE(SendWithDescriptors(ends->stderr_end.get(), "second", fds, Patience::kNone).ok());
  lingering.DropOwn();
  const auto begin = steady_clock::now();
  LastWords words;
  words.ReadErrors(ends->errors.get());
  EndAndLeaveOpen(ends->errors);
  EXPECT_LT(steady_clock::now() - begin, kQuick);
  const auto failure = words.Judge(false);
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->reason, "first");
}

// The kernel tells of that once, in place of the next packet.
TEST(SentDescriptors, OfADaemonThatEndsWithPacketsUnreadAreNotTaken) {
  Sent sent("Dstate=done\n");
  ASSERT_TRUE(sent.sent);
  ASSERT_TRUE(sent.lifeline.Send("T").ok());
  sent.daemon.Reset();
  const auto begin = steady_clock::now();
  LastWords words;
  words.ReadAll(sent.lifeline, -1);
  EXPECT_LT(steady_clock::now() - begin, kQuick);
  EXPECT_TRUE(sent.lifeline.broken());
  sent.lifeline.End();
}

// One with descriptors may come before the next call.
TEST(SentDescriptors, WhereNoPacketIsThereNothingMayBeRead) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
  const UniqueFd ours(ends[0]);
  UniqueFd theirs(ends[1]);
  EXPECT_EQ(PeekPacket(ours.get()), NextPacket::kNone);
  ASSERT_EQ(::send(theirs.get(), "x", 1, MSG_NOSIGNAL), 1);
  EXPECT_EQ(PeekPacket(ours.get()), NextPacket::kPlain);
  char byte;
  ASSERT_EQ(::read(ours.get(), &byte, 1), 1);
  const int fds[] = {STDIN_FILENO};
  ASSERT_TRUE(SendWithDescriptors(theirs.get(), "x", fds, Patience::kNone).ok());
  EXPECT_EQ(PeekPacket(ours.get()), NextPacket::kWithDescriptors);
  ASSERT_EQ(::read(ours.get(), &byte, 1), 1);
  theirs.Reset();
  EXPECT_EQ(PeekPacket(ours.get()), NextPacket::kPlain) << "the end";
  EXPECT_EQ(::read(ours.get(), &byte, 1), 0);
}

// A page of this process's that whoever touches it waits for, until it is given.
class AwaitedPage {
 public:
  AwaitedPage() : fd_(static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK))) {
    uffdio_api api{UFFD_API, 0, 0};
    page_ = static_cast<char*>(::mmap(nullptr, static_cast<size_t>(size_), PROT_READ | PROT_WRITE,
                                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    uffdio_register there{};
    there.range = {reinterpret_cast<uint64_t>(page_), static_cast<uint64_t>(size_)};
    there.mode = UFFDIO_REGISTER_MODE_MISSING;
    usable_ = fd_ && page_ != MAP_FAILED && ::ioctl(fd_.get(), UFFDIO_API, &api) == 0 &&
              ::ioctl(fd_.get(), UFFDIO_REGISTER, &there) == 0;
  }
  bool usable() const { return usable_; }
  const char* get() const { return page_; }
  bool WaitUntilTouched() const {
    pollfd touched{fd_.get(), POLLIN, 0};
    return ::poll(&touched, 1, 10'000) == 1;
  }
  void Give() const {
    uffdio_zeropage zero{};
    zero.range = {reinterpret_cast<uint64_t>(page_), static_cast<uint64_t>(size_)};
    ::ioctl(fd_.get(), UFFDIO_ZEROPAGE, &zero);
  }

 private:
  const UniqueFd fd_;
  const long size_ = ::sysconf(_SC_PAGESIZE);
  char* page_ = nullptr;
  bool usable_ = false;
};

// As in a page of a file whose file system the user makes, and lets hang.
TEST(Stderr, OfADaemonThatStopsWhileItWritesHoldsNobodyUp) {
  const AwaitedPage page;
  if (!page.usable()) GTEST_SKIP() << "pages cannot be waited for";
  Result<Ends> ends = MakeEnds();
  ASSERT_TRUE(ends.ok());
  std::thread writer([&] { EXPECT_EQ(::write(ends->stderr_end.get(), page.get(), 1), 1); });
  EXPECT_TRUE(page.WaitUntilTouched());
  std::atomic<bool> over = false;
  std::thread watchdog([&] {
    for (int i = 0; i < kLinger * 100 && !over; ++i) ::poll(nullptr, 0, 10);
    page.Give();
  });
  const auto begin = steady_clock::now();
  LastWords words;
  words.ReadErrors(ends->errors.get());
  EXPECT_LT(steady_clock::now() - begin, kQuick);
  over = true;
  watchdog.join();
  writer.join();
}

}  // namespace
}  // namespace sonde::launch
