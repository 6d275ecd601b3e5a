// A parent's links to its children: whoever of the step comes gets in, in whatever crowd.
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "daemon/link/send.h"
#include "daemon/link/trust/handshake.h"
#include "daemon/link/trust/protocol.h"
#include "daemon/tree/children/child_links.h"
#include "daemon/tree/query_fanout.h"
#include "tests/unit/links_carriers.h"
#include "tree_owners.h"

namespace sonde::tree {
namespace {

constexpr size_t kFanout = 100;

// A node that proves the key to its parent.
struct Child {
  Child(Fabric& fabric, const std::string& address, uint32_t index)
      : handshake({}, {Channel::Purpose::kChild, kHeadIndex, address},
                  {.job = "1", .step = "0", .host = "n", .index = index}) {
    auto connected = fabric.Connect(address);
    if (!connected.ok()) {
      why = connected.status();
      return;
    }
    link = *std::move(connected);
    Listen();
    Send(*link, Type::kHello, handshake.Hello());
  }
  void Listen() {
    link->SetHandler(
        {.message = [this](uint8_t type, std::string_view payload) { OnMessage(type, payload); },
         .closed = [this](const Status& status) { why = status; }});
  }
  void OnMessage(uint8_t type, std::string_view payload) {
    if (proven) {
      is_in = true;
      return;
    }
    auto step = handshake.OnMessage(type, payload);
    ASSERT_TRUE(step.ok()) << step.status().message();
    Send(*link, step->answer->type, step->answer->payload);
    proven = true;
    link = SealWith(*std::move(step->seals), std::move(link));
    Listen();
  }

  ConnectingHandshake handshake;
  std::unique_ptr<Link> link;
  bool proven = false;
  bool is_in = false;
  Status why;
};

// All children of a parent come at once, as when they were told of it in one moment.
void ExpectAllIn(Loop& loop, Fabric& parent, Fabric& others) {
  QueryFanout queries(loop);
  TickMerger merger(1, [](const TickMerger::Row&, bool) {});
  ChildrenAlone alone;
  Children children(merger, queries, {kSecond, kSecond}, Keep::kUntilSafe, alone);
  ChildLinks links(loop, {}, kSecond, children, [] {});
  const auto address = links.Listen(parent, kHeadIndex, kFanout);
  ASSERT_TRUE(address.ok()) << address.status().message();
  std::vector<std::unique_ptr<Child>> all;
  for (uint32_t i = 0; i < kFanout; ++i) {
    all.push_back(std::make_unique<Child>(others, *address, i));
  }
  size_t in = 0;
  size_t out = 0;
  ASSERT_TRUE(RunUntil(loop,
                       [&] {
                         children.SendLeave();  // which those who are in hear
                         in = out = 0;
                         for (const auto& child : all) {
                           in += child->is_in ? 1 : 0;
                           out += child->why.ok() ? 0 : 1;
                         }
                         return in + out == kFanout;
                       }))
      << in << " are in";
  EXPECT_EQ(out, 0u) << "were closed to make room for others of the step";
}

TEST(ChildLinks, LetAllOfAWideFanoutInAtOnceOverSockets) {
  Loop loop;
  SocketFabric fabric(loop, "127.0.0.1");
  ExpectAllIn(loop, fabric, fabric);
}

template <typename Over>
class WideFanout : public testing::Test {};
using Overs = testing::Types<OverMsg, OverRdm>;
TYPED_TEST_SUITE(WideFanout, Overs);

TYPED_TEST(WideFanout, AllGetInAtOnce) {
  Loop loop;
  FabricOptions options = TypeParam::Options();
  ChildLinks::MakeRoom(kFanout, options);
  auto parent = OpenFabric(loop, options);
  ASSERT_TRUE(parent.ok()) << parent.status().message();
  auto others = OpenFabric(loop, options);
  ASSERT_TRUE(others.ok()) << others.status().message();
  ExpectAllIn(loop, **parent, **others);
}

}  // namespace
}  // namespace sonde::tree
