#include "core/descriptor_message.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <filesystem>
#include <string>

namespace sonde::descriptor_message_test {
namespace {

using testing::IsEmpty;
using testing::SizeIs;
namespace fs = std::filesystem;

size_t OpenNow() {
  size_t count = 0;
  for ([[maybe_unused]] const auto& one : fs::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

class DescriptorMessageTest : public testing::TestWithParam<int> {
 protected:
  DescriptorMessageTest() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, GetParam() | SOCK_CLOEXEC, 0, ends), 0);
    here_.Reset(ends[0]);
    there_.Reset(ends[1]);
  }
  void Send(std::string_view text, size_t count) const {
    const std::vector<int> fds(count, file_.get());
    const auto sent = SendWithDescriptors(here_.get(), text, fds, Patience::kNone);
    ASSERT_TRUE(sent.ok()) << sent.status().message();
    EXPECT_EQ(*sent, text.size());
  }
  Result<DescriptorMessage> Receive(size_t most) {
    return ReceiveWithDescriptors(there_.get(), buffer_, most, Patience::kNone);
  }
  // That nothing of what has come is open any more.
  void ExpectRefused(size_t most) {
    const size_t before = OpenNow();
    EXPECT_EQ(Receive(most).status().code(), Code::kCorrupt);
    EXPECT_EQ(OpenNow(), before);
  }

  UniqueFd file_{::open("/dev/null", O_RDONLY | O_CLOEXEC)};
  UniqueFd here_, there_;
  char buffer_[64] = {};
};

TEST_P(DescriptorMessageTest, ComeWithTheirBytesAndAreNotInherited) {
  Send("two", 2);
  const auto got = Receive(2);
  ASSERT_TRUE(got.ok()) << got.status().message();
  EXPECT_EQ(std::string_view(buffer_, got->size), "two");
  ASSERT_THAT(got->fds, SizeIs(2));
  for (const UniqueFd& fd : got->fds) EXPECT_EQ(::fcntl(fd.get(), F_GETFD), FD_CLOEXEC);
  Send("none", 0);
  EXPECT_THAT(Receive(2)->fds, IsEmpty());
}

TEST_P(DescriptorMessageTest, MoreThanWereExpectedAreRefusedAndClosed) {
  // One too many fits where the control data of one is padded.
  for (const size_t count : {size_t{2}, size_t{3}, kMostDescriptors}) {
    Send("x", count);
    ExpectRefused(1);
  }
  Send("x", 1);
  ExpectRefused(0);
  EXPECT_EQ(SendWithDescriptors(here_.get(), "x", std::vector<int>(kMostDescriptors + 1, 0),
                                Patience::kNone)
                .status()
                .code(),
            Code::kLimit);
}

TEST_P(DescriptorMessageTest, OfSeveralMessagesEachKeepsItsOwn) {
  Send("a", 1);
  Send("b", 1);
  const size_t before = OpenNow();
  for (const char text : {'a', 'b'}) {
    const auto got = Receive(1);
    ASSERT_TRUE(got.ok()) << got.status().message();
    EXPECT_EQ(std::string_view(buffer_, got->size), std::string_view(&text, 1));
    EXPECT_THAT(got->fds, SizeIs(1));
  }
  EXPECT_EQ(OpenNow(), before);
}

TEST_P(DescriptorMessageTest, CutOffControlDataIsRefused) {
  Send("x", 8);
  rlimit old{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &old), 0);
  const size_t before = OpenNow();
  // The kernel gives as many as there is room for, and cuts off the rest.
  const UniqueFd next(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const rlimit few{static_cast<rlim_t>(next.get()) + 3, old.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  const auto got = Receive(8);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &old), 0);
  EXPECT_EQ(got.status().code(), Code::kCorrupt);
  EXPECT_EQ(OpenNow(), before + 1);
}

TEST_P(DescriptorMessageTest, APacketThatIsTooLongIsRefusedAndItsDescriptorsClosed) {
  Send(std::string(sizeof(buffer_) + 1, 'x'), 1);
  if (GetParam() == SOCK_SEQPACKET) return ExpectRefused(1);
  // A stream has none: its descriptors come with the first part.
  EXPECT_THAT(Receive(1)->fds, SizeIs(1));
  const auto rest = Receive(1);
  EXPECT_EQ(rest->size, 1u);
  EXPECT_THAT(rest->fds, IsEmpty());
}

TEST_P(DescriptorMessageTest, NothingAndTheEndAreToldApart) {
  EXPECT_EQ(Receive(1).status().code(), Code::kBusy);
  here_.Reset();
  EXPECT_EQ(Receive(1).status().code(), Code::kNotFound);
  EXPECT_FALSE(SendWithDescriptors(there_.get(), "x", {}, Patience::kNone).ok());
}

INSTANTIATE_TEST_SUITE_P(Sockets, DescriptorMessageTest,
                         testing::Values(SOCK_STREAM, SOCK_SEQPACKET), [](const auto& one) {
                           return one.param == SOCK_STREAM ? "Stream" : "Packets";
                         });

}  // namespace
}  // namespace sonde::descriptor_message_test
