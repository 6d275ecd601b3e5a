// Nothing listens outside the range of ports.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/link/libfabric/lazy_fabric.h"
#include "daemon/tree/children/child_links.h"
#include "tests/unit/links_carriers.h"
#include "tests/unit/listening_ports.h"
#include "tests/unit/tree_owners.h"

namespace sonde::tree {
namespace {

using testing::AllOf;
using testing::Each;
using testing::Ge;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Le;
using testing::Not;
using testing::SizeIs;

// Some of them are free.
PortRange SomePorts(Loop& loop) {
  const auto any = Listener::Open(loop, "127.0.0.1", {0, 0}, [](auto) {});
  const uint16_t port = (*any)->port();
  return {static_cast<uint16_t>(port - 30), port};
}

auto AreWithin(PortRange range) { return Each(AllOf(Ge(range.first), Le(range.second))); }

TEST(Listeners, AreAtAPortOfTheRangeOrNowhere) {
  Loop loop;
  const PortRange range = SomePorts(loop);
  std::vector<std::unique_ptr<Listener>> listeners;
  for (;;) {
    auto listener = Listener::Open(loop, "127.0.0.1", range, [](auto) {});
    if (!listener.ok()) {
      EXPECT_EQ(listener.status().message(), "no free port from " + std::to_string(range.first) +
                                                 " to " + std::to_string(range.second));
      break;
    }
    listeners.push_back(*std::move(listener));
  }
  EXPECT_THAT(listeners, SizeIs(AllOf(Ge(1u), Le(31u))));
  EXPECT_THAT(ListeningPorts(), AllOf(SizeIs(listeners.size()), AreWithin(range)));
}

// A small range would be used up by the connections of steps that are over.
TEST(Listeners, TakeAPortWhoseConnectionsHaveJustEnded) {
  Loop loop;
  End server;
  End client;
  auto listener = *Listener::Open(loop, "127.0.0.1", {0, 0}, [&](std::unique_ptr<SocketLink> link) {
    server.Own(std::move(link));
  });
  const uint16_t port = listener->port();
  client.Own(*SocketLink::Connect(loop, "127.0.0.1", port));
  ASSERT_TRUE(RunUntil(loop, [&] { return server.link != nullptr; }));
  server.link.reset();  // this side closes first, and its port waits for late packets
  ASSERT_TRUE(RunUntil(loop, [&] { return client.closed == 1; }));
  client.link.reset();
  listener.reset();
  EXPECT_TRUE(Listener::Open(loop, "127.0.0.1", {port, port}, [](auto) {}).ok());
}

struct Provider {
  const char* name;
  Endpoint endpoint;
  friend void PrintTo(const Provider& one, std::ostream* out) { *out << one.name; }
};

class FabricPorts : public testing::TestWithParam<Provider> {
 protected:
  Result<std::unique_ptr<Fabric>> Open(PortRange range) {
    // Or each takes 88 MB.
    setenv("FI_OFI_RXM_MSG_RX_SIZE", "16", 1);
    setenv("FI_OFI_RXM_MSG_TX_SIZE", "16", 1);
    return OpenFabric(loop_, {.provider = GetParam().name,
                              .local_address = "127.0.0.1",
                              .ports = range,
                              .endpoints = {GetParam().endpoint}});
  }
  Loop loop_;
};

TEST_P(FabricPorts, AreOfTheRange) {
  const PortRange range = SomePorts(loop_);
  auto server = Open(range);
  ASSERT_TRUE(server.ok()) << server.status().message();
  auto client = Open(range);
  ASSERT_TRUE(client.ok()) << client.status().message();
  End there;
  End here;
  const auto address =
      (*server)->Listen([&](std::unique_ptr<Link> link) { there.Own(std::move(link)); });
  ASSERT_TRUE(address.ok()) << address.status().message();
  here.Own(*(*client)->Connect(*address));
  ASSERT_TRUE(here.link->Send(1, "hello").ok());
  EXPECT_TRUE(RunUntil(loop_, [&] { return !there.messages.empty(); }));
  EXPECT_THAT(ListeningPorts(), AllOf(Not(IsEmpty()), AreWithin(range)));
}

TEST_P(FabricPorts, AreNoneWhereTheRangeIsUsedUp) {
  auto taken = *Listener::Open(loop_, "127.0.0.1", {0, 0}, [](auto) {});
  const PortRange range(taken->port(), taken->port());
  auto fabric = Open(range);
  // Datagrams have their port from the beginning.
  const Status status =
      fabric.ok() ? (*fabric)->Listen([](std::unique_ptr<Link>) {}).status() : fabric.status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("no free port from"));
  EXPECT_THAT(ListeningPorts(), AreWithin(range));
}

INSTANTIATE_TEST_SUITE_P(Providers, FabricPorts,
                         testing::Values(Provider{"tcp", Endpoint::kMsg},
                                         Provider{"tcp;ofi_rxm", Endpoint::kRdm},
                                         Provider{"net,tcp", Endpoint::kRdm}));

TEST(SocketFabricPorts, AreOfTheRangeAndGivenBack) {
  Loop loop;
  const PortRange range = SomePorts(loop);
  LazyFabric lazy(loop);
  Fabric* fabric = nullptr;
  lazy.With({.provider = "sockets", .local_address = "127.0.0.1", .ports = range},
            [&](const Result<Fabric*>& opened) { fabric = *opened; });
  EXPECT_THAT(ListeningPorts(), IsEmpty()) << "who has no children does not listen";
  ASSERT_TRUE(fabric->Listen([](std::unique_ptr<Link>) {}).ok());
  EXPECT_THAT(ListeningPorts(), AllOf(SizeIs(1), AreWithin(range)));
  fabric->StopListening();
  EXPECT_THAT(ListeningPorts(), IsEmpty());
}

// When a node is done nobody is to send to it any more.
TEST(ChildLinksPorts, AreGivenBackWhenTheNodeIsDone) {
  Loop loop;
  QueryFanout queries(loop);
  TickMerger merger(1, [](const TickMerger::Row&, bool) {});
  ChildrenAlone alone;
  Children children(merger, queries, {kSecond, kSecond}, Keep::kUntilSafe, alone);
  SocketFabric fabric(loop, "127.0.0.1");
  ChildLinks links(loop, {}, kSecond, children, [] {});
  ASSERT_TRUE(links.Listen(fabric, kHeadIndex, 16).ok());
  EXPECT_THAT(ListeningPorts(), SizeIs(1));
  links.Close();
  EXPECT_THAT(ListeningPorts(), IsEmpty());
}

}  // namespace
}  // namespace sonde::tree
