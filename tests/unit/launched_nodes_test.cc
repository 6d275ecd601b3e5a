#include "daemon/launched_nodes.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>
#include <string>
#include <vector>

#include "core/unique_fd.h"
#include "launcher/launch.h"
#include "tests/unit/loopback.h"

namespace sonde::launched_nodes_test {
namespace {

using std::chrono::milliseconds;

// Long enough for the test never to see its end, so what is returned is what was seen.
constexpr milliseconds kLong{60'000};

class LaunchedNodes : public testing::Test {
 protected:
  void SetUp() override {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
    lifeline_ = UniqueFd(ends[0]);
    launcher_ = UniqueFd(ends[1]);
  }
  void Tell(int nodes) {
    launch::Writer message(launch::kLaunch);
    message.Add(launch::key::kNodes, nodes);
    const std::string& packet = message.packet();
    ASSERT_EQ(::send(launcher_.get(), packet.data(), packet.size(), 0),
              static_cast<ssize_t>(packet.size()));
  }
  void Connect() {
    nodes_.emplace_back(::socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    at.sin_port = htons(listener_.port);
    ASSERT_EQ(::connect(nodes_.back().get(), reinterpret_cast<sockaddr*>(&at), sizeof(at)), 0);
  }
  Launched Await(milliseconds first, milliseconds others) const {
    return AwaitLaunchedNodes(listener_.fd.get(), lifeline_.get(), {first, others});
  }

  UniqueFd lifeline_;
  UniqueFd launcher_;
  LoopbackListener listener_{16};
  std::vector<UniqueFd> nodes_;
};

TEST_F(LaunchedNodes, AllThatTheMessageNamesEndTheWait) {
  Tell(3);
  for (int i = 0; i < 3; ++i) Connect();
  EXPECT_EQ(Await(kLong, kLong), Launched::kAll);
}

TEST_F(LaunchedNodes, TheLastOnesAreNotAwaitedForLong) {
  Tell(3);
  for (int i = 0; i < 2; ++i) Connect();
  EXPECT_EQ(Await(kLong, milliseconds(2)), Launched::kSome);
}

TEST_F(LaunchedNodes, WhereNobodyComesTheHeadBeginsAllTheSame) {
  Tell(1);
  EXPECT_EQ(Await(milliseconds(2), kLong), Launched::kNone);
}

TEST_F(LaunchedNodes, WithoutAMessageTheFirstNodeIsNotAll) {
  Connect();
  EXPECT_EQ(Await(kLong, milliseconds(2)), Launched::kSome);
}

TEST_F(LaunchedNodes, ALauncherThatIsGoneEndsTheWait) {
  Tell(2);
  Connect();
  launcher_.Reset();
  EXPECT_EQ(Await(kLong, kLong), Launched::kEnded);
}

TEST_F(LaunchedNodes, TheMessageStaysUnread) {
  Tell(1);
  Connect();
  ASSERT_EQ(Await(kLong, kLong), Launched::kAll);
  char kind = 0;
  EXPECT_EQ(::recv(lifeline_.get(), &kind, 1, MSG_DONTWAIT), 1);
  EXPECT_EQ(kind, launch::kLaunch);
}

TEST_F(LaunchedNodes, NodesAreStillThereToBeAccepted) {
  Tell(1);
  Connect();
  ASSERT_EQ(Await(kLong, kLong), Launched::kAll);
  EXPECT_TRUE(UniqueFd(::accept(listener_.fd.get(), nullptr, nullptr)));
}

}  // namespace
}  // namespace sonde::launched_nodes_test
