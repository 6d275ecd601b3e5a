// Connections that a library has accepted for us, and that nobody needs.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "daemon/link/address.h"
#include "daemon/link/silent_connections.h"
#include "daemon/loop.h"
#include "tests/unit/links_carriers.h"

namespace sonde::tree {
namespace {

using testing::Each;

class Silent : public testing::Test {
 protected:
  struct Pair {
    UniqueFd theirs;
    UniqueFd ours;
  };

  void SetUp() override {
    listener_ = UniqueFd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_in any = AddressOf("127.0.0.1", 0);
    ASSERT_EQ(bind(listener_.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any), 0);
    ASSERT_EQ(listen(listener_.get(), 16), 0);
    port_ = PortOf(LocalAddress(listener_.get()));
  }
  static sockaddr_in AddressOf(const char* host, uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    inet_pton(AF_INET, host, &address.sin_addr);
    return address;
  }
  // A connection from that host on which so many bytes have come.
  Pair From(const char* host, size_t bytes) {
    Pair pair;
    const sockaddr_in from = AddressOf(host, 0);
    const sockaddr_in to = AddressOf("127.0.0.1", port_);
    // At another address the listener's port is free, and what is there would look like accepted.
    do {
      pair.theirs = UniqueFd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      EXPECT_EQ(bind(pair.theirs.get(), reinterpret_cast<const sockaddr*>(&from), sizeof from), 0);
    } while (PortOf(LocalAddress(pair.theirs.get())) == port_);
    EXPECT_EQ(connect(pair.theirs.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
    pair.ours = UniqueFd(accept(listener_.get(), nullptr, nullptr));
    std::string said(bytes, 'x');
    if (bytes == 0) return pair;
    const auto size = static_cast<ssize_t>(bytes);
    EXPECT_EQ(send(pair.theirs.get(), said.data(), bytes, MSG_NOSIGNAL), size);
    EXPECT_EQ(recv(pair.ours.get(), said.data(), bytes, MSG_WAITALL), size);
    return pair;
  }
  static bool Shut(const Pair& pair) {
    char byte = 0;
    return recv(pair.theirs.get(), &byte, 1, MSG_DONTWAIT) == 0;
  }
  static std::vector<bool> Shut(const std::vector<Pair>& pairs) {
    std::vector<bool> shut;
    for (const Pair& pair : pairs) shut.push_back(Shut(pair));
    return shut;
  }

  UniqueFd listener_;
  uint16_t port_ = 0;
};

TEST_F(Silent, OfACrowdThoseGoThatHaveSaidLeastOfTheHostThatHasMost) {
  constexpr int kMost = 20;
  SilentConnections connections(port_, kMost);
  std::vector<Pair> few;
  for (size_t i = 0; i < 5; ++i) few.push_back(From("127.0.0.2", SilentConnections::kRequest));
  const Pair old = From("127.0.0.3", 5000);
  std::vector<Pair> crowd;
  for (size_t i = 0; i < 94; ++i) crowd.push_back(From("127.0.0.3", 100 + i));
  connections.Look();
  EXPECT_THAT(Shut(few), Each(false));
  EXPECT_FALSE(Shut(old));
  const std::vector<bool> gone = Shut(crowd);
  EXPECT_EQ(std::count(gone.begin(), gone.end(), true), 94 - (kMost - 5 - 1));
  EXPECT_TRUE(std::is_sorted(gone.rbegin(), gone.rend())) << "those that said most are left";
}

TEST_F(Silent, WhereThereIsRoomOnlyThoseGoThatSayNothing) {
  SilentConnections connections(port_, 200);
  std::vector<Pair> speaking;
  for (size_t i = 0; i < 50; ++i) speaking.push_back(From("127.0.0.2", 50));
  std::vector<Pair> silent;
  for (size_t i = 0; i < 50; ++i) silent.push_back(From("127.0.0.2", i % 2));
  connections.Look();
  EXPECT_THAT(Shut(silent), Each(false)) << "they may yet speak";
  Loop loop;
  std::function<void()> tick = [&] {
    connections.Look();
    loop.After(SilentConnections::kInterval, tick);
  };
  tick();
  EXPECT_TRUE(RunUntil(loop, [&] {
    const std::vector<bool> gone = Shut(silent);
    return std::count(gone.begin(), gone.end(), true) == 50;
  }));
  EXPECT_THAT(Shut(speaking), Each(false));
}

}  // namespace
}  // namespace sonde::tree
