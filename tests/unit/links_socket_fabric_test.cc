#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/link/libfabric/lazy_fabric.h"
#include "tests/unit/links_carriers.h"

namespace sonde::tree {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class SocketFabrics : public testing::Test {
 protected:
  Loop loop;
  SocketFabric fabric{loop, "127.0.0.1"};
};

// What a peer says is an address may be anything.
TEST_F(SocketFabrics, RefuseWhatIsNoAddressOfTheirs) {
  for (const std::string_view bad :
       {"", "tcp", "tcp:", "tcp::", "tcp:127.0.0.1", "tcp:127.0.0.1:", "tcp:127.0.0.1:0",
        "tcp:127.0.0.1:65536", "tcp:127.0.0.1:80x", "tcp:localhost:80", "tcp:a.example.org:80",
        "127.0.0.1:80", "udp:127.0.0.1:80", "\x02\x00\x00\x00\x00P\x7f"}) {
    const auto link = fabric.Connect(bad);
    ASSERT_FALSE(link.ok()) << bad;
    EXPECT_EQ(link.status().code(), Code::kInvalid);
    EXPECT_THAT(std::string(link.status().message()), HasSubstr("provider"));
  }
  EXPECT_FALSE(fabric.Connect("tcp:" + std::string(4096, '1') + ":80").ok());
  EXPECT_FALSE(fabric.Connect(std::string("tcp:127.0.0.1\0.example.org:80", 29)).ok());
}

TEST_F(SocketFabrics, CarryIpv6) {
  SocketFabric six(loop, "::1");
  End server;
  const auto address = six.Listen([&](std::unique_ptr<Link> link) { server.Own(std::move(link)); });
  if (!address.ok()) GTEST_SKIP() << "no IPv6: " << address.status().message();
  End client;
  client.Own(*six.Connect(*address));
  ASSERT_TRUE(client.link->Send(1, "hello").ok());
  EXPECT_TRUE(RunUntil(loop, [&] { return !server.messages.empty(); }));
}

TEST_F(SocketFabrics, ListenOnAnInterfaceByItsName) {
  SocketFabric loopback(loop, "lo");
  const auto address = loopback.Listen([](std::unique_ptr<Link>) {});
  ASSERT_TRUE(address.ok()) << address.status().message();
  EXPECT_THAT(*address, StartsWith("tcp:127.0.0.1:"));
}

TEST_F(SocketFabrics, SayWhyTheyCannotListen) {
  SocketFabric elsewhere(loop, "192.0.2.1");  // an address for documentation
  const auto address = elsewhere.Listen([](std::unique_ptr<Link>) {});
  ASSERT_FALSE(address.ok());
  EXPECT_THAT(std::string(address.status().message()), HasSubstr("192.0.2.1"));
}

// A parent that is gone is told through the link, which its child leaves then.
TEST_F(SocketFabrics, TellOfAParentThatDoesNotListenAnyMore) {
  std::string address;
  {
    SocketFabric gone(loop, "127.0.0.1");
    address = *gone.Listen([](std::unique_ptr<Link>) {});
  }
  End client;
  auto link = fabric.Connect(address);
  if (!link.ok()) return;  // it was told at once
  client.Own(*std::move(link));
  EXPECT_TRUE(RunUntil(loop, [&] { return client.closed == 1; }));
  EXPECT_FALSE(client.why.ok());
}

TEST_F(SocketFabrics, AreThereAtOnce) {
  LazyFabric lazy(loop);
  std::string name;
  lazy.With({.provider = "sockets", .local_address = "127.0.0.1"},
            [&](const Result<Fabric*>& opened) { name = opened.ok() ? (*opened)->name() : ""; });
  EXPECT_THAT(name, StartsWith("sockets at"));
  EXPECT_NE(lazy.get(), nullptr);
}

// Slurm tells the tasks, and they the daemon, what libfabric reads in the environment.
TEST_F(SocketFabrics, LibfabricIsOpenedOnceItsVariablesAreThere) {
  LazyFabric lazy(loop), other(loop);
  lazy.Hold();
  std::string name, at_once;
  const auto into = [](std::string& text) {
    return [&text](const Result<Fabric*>& opened) { text = opened.ok() ? (*opened)->name() : "-"; };
  };
  lazy.With({.provider = "tcp", .local_address = "127.0.0.1"}, into(name));
  // One that does not wait has been opened meanwhile.
  other.With({.provider = "tcp", .local_address = "127.0.0.1"}, into(at_once));
  ASSERT_TRUE(RunUntil(loop, [&] { return !at_once.empty(); }));
  EXPECT_EQ(name, "");
  lazy.Release();
  EXPECT_TRUE(RunUntil(loop, [&] { return !name.empty(); }));
  EXPECT_THAT(name, StartsWith("tcp at"));
}

TEST_F(SocketFabrics, DoNotWaitForVariables) {
  LazyFabric lazy(loop);
  lazy.Hold();
  std::string name;
  lazy.With({.provider = "sockets", .local_address = "127.0.0.1"},
            [&](const Result<Fabric*>& opened) { name = opened.ok() ? (*opened)->name() : ""; });
  EXPECT_THAT(name, StartsWith("sockets at"));
}

}  // namespace
}  // namespace sonde::tree
