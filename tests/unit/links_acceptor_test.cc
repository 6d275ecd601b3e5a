#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <memory>
#include <string>
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

// A connection that says nothing, from whatever address.
class SilentLink final : public Link {
 public:
  using Closed = std::shared_ptr<std::vector<std::string>>;
  SilentLink(std::string peer, Closed closed)
      : peer_(std::move(peer)), closed_(std::move(closed)) {}
  ~SilentLink() override { closed_->push_back(peer_); }
  Status Send(uint8_t, std::string_view) override { return {}; }
  void CloseWhenSent() override {}
  size_t queued() const override { return 0; }
  void SetMaxMessage(size_t) override {}
  std::string peer() const override { return peer_; }

 private:
  const std::string peer_;
  const Closed closed_;
};

// Who has one machine on IPv6 has 2^64 addresses.
TEST_F(Acceptors, ACrowdOfOneNetworkOfIpv6KeepsOutOnlyItself) {
  const auto closed = std::make_shared<std::vector<std::string>>();
  const auto come = [&](const std::string& peer) {
    acceptor.Take(std::make_unique<SilentLink>(peer, closed));
    loop.Post([this] { loop.Stop(); });
    loop.Run();
  };
  come("[2001:db8:1::1]:40000");
  come("10.0.0.7:40000");
  for (int i = 1; i <= 6; ++i) come("[2001:db8:2::" + std::to_string(i) + "]:40000 over tcp");
  using List = std::vector<std::string>;
  EXPECT_EQ(*closed, (List{"[2001:db8:2::1]:40000 over tcp", "[2001:db8:2::2]:40000 over tcp",
                           "[2001:db8:2::3]:40000 over tcp", "[2001:db8:2::4]:40000 over tcp"}))
      << "its own, the oldest first";
  closed->clear();
  // Within a network, the address that has most of them.
  come("[2001:db8:2::6]:40001");
  come("[2001:db8:2::7]:40000");
  EXPECT_EQ(*closed, (List{"[2001:db8:2::5]:40000 over tcp", "[2001:db8:2::6]:40000 over tcp"}));
  EXPECT_EQ(acceptor.pending(), kRoom);
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
