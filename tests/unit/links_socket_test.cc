#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/links_carriers.h"

namespace sonde::tree {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// A plain TCP client, connected to a port of loopback.
UniqueFd RawClient(uint16_t port) {
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const Address to = Resolve("127.0.0.1", port, true)->front();
  EXPECT_EQ(connect(fd.get(), to.get(), to.length), 0);
  return fd;
}

class Sockets : public testing::Test {
 protected:
  std::unique_ptr<Listener> Listen() {
    auto listener =
        Listener::Open(loop, "127.0.0.1", {0, 0}, [this](std::unique_ptr<SocketLink> link) {
          peer_address = AddressText(link->peer_address());
          accepted.emplace_back(std::make_unique<End>())->Own(std::move(link));
        });
    EXPECT_TRUE(listener.ok());
    return *std::move(listener);
  }

  Loop loop;
  std::vector<std::unique_ptr<End>> accepted;
  std::string peer_address;
};

TEST_F(Sockets, BothEndsKnowTheirAddresses) {
  const auto listener = Listen();
  auto link = SocketLink::Connect(loop, "127.0.0.1", listener->port());
  ASSERT_TRUE(link.ok());
  SocketLink& client = **link;
  ASSERT_TRUE(RunUntil(loop, [&] { return !accepted.empty() && client.peer_address().known(); }));
  EXPECT_EQ(AddressText(client.peer_address()), AddressText(listener->address()));
  EXPECT_EQ(AddressText(client.local_address()), peer_address);
  EXPECT_EQ(accepted[0]->link->peer(), peer_address);
}

TEST_F(Sockets, ARefusedConnectionIsToldWithItsAddress) {
  uint16_t port = 0;
  { port = Listen()->port(); }
  End end;
  auto link = SocketLink::Connect(loop, "127.0.0.1", port);
  ASSERT_TRUE(link.ok());
  end.Own(*std::move(link));
  ASSERT_TRUE(end.link->Send(1, "waits").ok());
  ASSERT_TRUE(RunUntil(loop, [&] { return end.closed > 0; }));
  EXPECT_EQ(end.why.code(), Code::kUnavailable);
  EXPECT_THAT(std::string(end.why.message()),
              HasSubstr("127.0.0.1:" + std::to_string(port) + ": Connection refused"));
}

TEST_F(Sockets, AHostMayBeAName) {
  const auto listener = Listen();
  End end;
  auto link = SocketLink::Connect(loop, "localhost", listener->port());
  ASSERT_TRUE(link.ok());
  end.Own(*std::move(link));
  ASSERT_TRUE(end.link->Send(1, "hello").ok());
  EXPECT_TRUE(RunUntil(loop, [&] {
    return end.closed > 0 || (!accepted.empty() && !accepted[0]->messages.empty());
  }));
  EXPECT_EQ(end.closed, 0) << end.why.message();
}

TEST_F(Sockets, ALinkMayGoWhileItsHostIsBeingResolved) {
  auto link = SocketLink::Connect(loop, "localhost", 1);
  ASSERT_TRUE(link.ok());
  link->reset();
  bool later = false;
  loop.After(20 * kMillisecond, [&] { later = true; });
  EXPECT_TRUE(RunUntil(loop, [&] { return later; }));
}

TEST_F(Sockets, GarbageClosesTheLink) {
  const auto listener = Listen();
  const UniqueFd raw = RawClient(listener->port());
  const std::string garbage = "GET / HTTP/1.1\r\n\r\n";
  ASSERT_EQ(send(raw.get(), garbage.data(), garbage.size(), 0), ssize_t(garbage.size()));
  ASSERT_TRUE(RunUntil(loop, [&] { return !accepted.empty() && accepted[0]->closed > 0; }));
  EXPECT_EQ(accepted[0]->why.code(), Code::kCorrupt);
  EXPECT_THAT(std::string(accepted[0]->why.message()), StartsWith("127.0.0.1:"));
}

TEST_F(Sockets, APeerThatDoesNotReadFillsTheQueueAndNoMore) {
  const auto listener = Listen();
  const UniqueFd raw = RawClient(listener->port());
  ASSERT_TRUE(RunUntil(loop, [&] { return !accepted.empty(); }));
  const std::string chunk(1u << 20, 'x');
  Status status;
  for (int i = 0; i < 256 && status.ok(); ++i) status = accepted[0]->link->Send(1, chunk);
  EXPECT_EQ(status.code(), Code::kLimit);
  // Waiting costs nothing.
  bool passed = false;
  loop.After(50 * kMillisecond, [&] { passed = true; });
  const uint64_t before = loop.wakeups();
  ASSERT_TRUE(RunUntil(loop, [&] { return passed; }));
  EXPECT_LE(loop.wakeups() - before, 4u);
}

// Takes all descriptors of the process but `left`, until it goes.
class NoDescriptors {
 public:
  NoDescriptors() {
    getrlimit(RLIMIT_NOFILE, &before_);
    const UniqueFd next(open("/dev/null", O_RDONLY | O_CLOEXEC));
    rlimit limit = before_;
    limit.rlim_cur = static_cast<rlim_t>(next.get());
    setrlimit(RLIMIT_NOFILE, &limit);
  }
  ~NoDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

TEST_F(Sockets, WithoutDescriptorsConnectionsWaitAndTheLoopSleeps) {
  const auto listener = Listen();
  const UniqueFd raw = RawClient(listener->port());
  {
    const NoDescriptors none;
    bool passed = false;
    loop.After(Listener::kRetry / 2, [&] { passed = true; });
    const uint64_t before = loop.wakeups();
    ASSERT_TRUE(RunUntil(loop, [&] { return passed; }));
    EXPECT_LE(loop.wakeups() - before, 5u);
    EXPECT_TRUE(accepted.empty());
  }
  EXPECT_TRUE(RunUntil(loop, [&] { return !accepted.empty(); }));
}

TEST_F(Sockets, OnlyAListeningSocketIsAdopted) {
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto listener = Listener::Adopt(loop, std::move(fd), {});
  EXPECT_EQ(listener.status().code(), Code::kInvalid);
}

TEST(Addresses, AreWrittenAsPeopleWriteThem) {
  EXPECT_EQ(AddressText(Resolve("10.0.0.7", 51234, true)->front()), "10.0.0.7:51234");
  EXPECT_EQ(AddressText(Resolve("::1", 80, true)->front()), "[::1]:80");
  EXPECT_EQ(AddressText(Resolve("::ffff:10.0.0.7", 80, true)->front()), "10.0.0.7:80");
  EXPECT_EQ(AddressText({}), "?");
  EXPECT_EQ(Resolve("not-a-number", 80, true).status().code(), Code::kNotFound);
}

}  // namespace
}  // namespace sonde::tree
