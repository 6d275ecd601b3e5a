#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <vector>

#include "daemon/link/send.h"
#include "daemon/link/trust/acceptor.h"
#include "daemon/link/trust/handshake.h"
#include "tests/unit/links_carriers.h"

namespace sonde::tree {
namespace {

StepKey KeyOf(unsigned char fill) {
  StepKey key;
  key.fill(fill);
  return key;
}

// A listening socket whose connections go to an Acceptor with room for four.
class Acceptors : public testing::Test {
 protected:
  static constexpr size_t kRoom = 4;

  Acceptors()
      : acceptor(
            loop, KeyOf(1), Channel(),
            [this](const Registration& who, std::unique_ptr<Link> link) {
              proven.push_back(who.host);
              links.push_back(std::move(link));
            },
            kRoom) {
    auto opened =
        Listener::Open(loop, "127.0.0.1", {0, 0}, [this](std::unique_ptr<SocketLink> link) {
          ++came;
          acceptor.Take(std::move(link));
        });
    EXPECT_TRUE(opened.ok()) << opened.status().message();
    listener = *std::move(opened);
  }

  // A connection from this address of the loopback that says nothing; the acceptor has it.
  UniqueFd Stranger(const char* from) {
    UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    inet_pton(AF_INET, from, &address.sin_addr);
    EXPECT_EQ(bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
    address.sin_port = htons(listener->port());
    EXPECT_EQ(connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    const size_t before = came;
    EXPECT_TRUE(RunUntil(loop, [&] { return came > before; }));
    return fd;
  }

  bool Closed(const UniqueFd& fd) {
    // What was refused is closed in the next round of the loop.
    loop.Post([this] { loop.Stop(); });
    loop.Run();
    char byte = 0;
    return recv(fd.get(), &byte, 1, MSG_DONTWAIT) == 0;
  }

  Loop loop;
  size_t came = 0;
  std::vector<std::string> proven;
  std::vector<std::unique_ptr<Link>> links;
  Acceptor acceptor;
  std::unique_ptr<Listener> listener;
};

TEST_F(Acceptors, ACrowdKeepsOutOnlyItself) {
  const UniqueFd alone = Stranger("127.0.0.2");
  std::vector<UniqueFd> crowd;
  for (int i = 0; i < 10; ++i) crowd.push_back(Stranger("127.0.0.3"));
  EXPECT_EQ(acceptor.pending(), kRoom);
  EXPECT_FALSE(Closed(alone)) << "it was there first, and is the only one of its address";
  for (int i = 0; i < 10; ++i) EXPECT_EQ(Closed(crowd[i]), i < 7) << i;  // the oldest went
}

TEST_F(Acceptors, ANodeComesInThroughACrowd) {
  std::vector<UniqueFd> crowd;
  for (int i = 0; i < 10; ++i) crowd.push_back(Stranger("127.0.0.3"));
  auto link = SocketLink::Connect(loop, "127.0.0.1", listener->port());
  ASSERT_TRUE(link.ok());
  const ConnectingHandshake handshake(KeyOf(1), Channel(), {.job = "1", .step = "0", .host = "n1"});
  (*link)->SetHandler({.message =
                           [&](uint8_t type, std::string_view payload) {
                             const auto step = handshake.OnMessage(type, payload);
                             ASSERT_TRUE(step.ok());
                             Send(**link, step->answer->type, step->answer->payload);
                           },
                       .closed = [](const Status& why) { FAIL() << why.message(); }});
  Send(**link, Type::kHello, handshake.Hello());
  ASSERT_TRUE(RunUntil(loop, [&] { return !proven.empty(); }));
  EXPECT_EQ(proven.front(), "n1");
  EXPECT_EQ(acceptor.pending(), kRoom - 1);
}

TEST_F(Acceptors, WhoGoesMakesRoom) {
  std::vector<UniqueFd> crowd;
  for (size_t i = 0; i < kRoom; ++i) crowd.push_back(Stranger("127.0.0.3"));
  crowd.erase(crowd.begin(), crowd.begin() + 2);
  ASSERT_TRUE(RunUntil(loop, [&] { return acceptor.pending() == kRoom - 2; }));
  const UniqueFd other = Stranger("127.0.0.2");
  EXPECT_EQ(acceptor.pending(), kRoom - 1);
  for (const UniqueFd& fd : crowd) EXPECT_FALSE(Closed(fd));
}

TEST(LogLimits, AllowOneLineASecond) {
  LogLimit limit;
  EXPECT_TRUE(limit.Take());
  EXPECT_FALSE(limit.Take());
  EXPECT_TRUE(LogLimit().Take());
}

}  // namespace
}  // namespace sonde::tree
