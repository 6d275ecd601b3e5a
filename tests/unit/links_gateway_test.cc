// A node's way to the head through a gateway: which one it is, how it is found, and what becomes of
// the node when it goes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "daemon/link/send.h"
#include "daemon/link/via_links.h"
#include "daemon/node/links/gateway.h"
#include "daemon/node/links/gateway_plan.h"
#include "daemon/node/links/head_link.h"
#include "tests/unit/links_carriers.h"

namespace sonde::node {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using tree::Type;

StepKey GatewayKey(unsigned char fill = 1) {
  StepKey key;
  key.fill(fill);
  return key;
}

// --- The plan ---

LaunchMessage LaunchOf(uint32_t node, uint32_t nodes) {
  LaunchMessage launch;
  launch.node_id = node;
  launch.job.expected_nodes = nodes;
  launch.hosts = "n[0-" + std::to_string(nodes - 1) + "]";
  launch.host = "n" + std::to_string(node);
  return launch;
}

TEST(GatewayPlans, NobodyHasMoreConnectionsThanTheSquareRoot) {
  constexpr uint32_t kNodes = 10'000;
  std::map<uint32_t, int> through;
  std::map<uint32_t, std::set<uint32_t>> afterwards;
  int gateways = 0;
  for (uint32_t node = 0; node < kNodes; ++node) {
    const GatewayPlan plan = PlanGateways(LaunchOf(node, kNodes), 1024);
    EXPECT_EQ(plan.is_gateway, node < 100);
    gateways += plan.is_gateway;
    if (plan.is_gateway) {
      EXPECT_THAT(plan.ways, IsEmpty());
      continue;
    }
    ASSERT_THAT(plan.ways, SizeIs(2));
    EXPECT_LT(plan.ways[0].node, 100u);
    EXPECT_EQ(plan.ways[0].host, "n" + std::to_string(plan.ways[0].node));
    ++through[plan.ways[0].node];
    EXPECT_NE(plan.ways[0].node, plan.ways[1].node);
    EXPECT_TRUE(afterwards[plan.ways[0].node].insert(plan.ways[1].node).second);
  }
  EXPECT_EQ(gateways, 100);
  for (const auto& [gateway, nodes] : through) EXPECT_EQ(nodes, 99) << gateway;
}

TEST(GatewayPlans, WhoCannotKnowComesToTheHead) {
  const auto direct = [](const LaunchMessage& launch) {
    const GatewayPlan plan = PlanGateways(launch, 4);
    return !plan.is_gateway && plan.ways.empty();
  };
  EXPECT_FALSE(direct(LaunchOf(4, 5)));
  EXPECT_TRUE(direct(LaunchOf(3, 4)));  // a small step
  LaunchMessage launch = LaunchOf(4, 5);
  launch.hosts.clear();
  EXPECT_TRUE(direct(launch));
  launch.hosts = "n[0-";
  EXPECT_TRUE(direct(launch));
  launch.hosts = "n[4,3,2,1,0]";  // another order
  EXPECT_TRUE(direct(launch));
  launch = LaunchOf(1, 5);
  launch.hosts = "n[1,0,2-4]";
  EXPECT_TRUE(direct(launch));
  launch = LaunchOf(4, 5);
  launch.job.het_job = "77";
  EXPECT_TRUE(direct(launch));
}

// The list may be cut: then there are fewer gateways, for all nodes the same.
TEST(GatewayPlans, TheBeginningOfTheListIsEnough) {
  LaunchMessage launch = LaunchOf(99, 100);
  launch.hosts = "n[0-3]";
  EXPECT_EQ(PlanGateways(launch, 4).ways[0].node, 3u);
  launch = LaunchOf(3, 100);
  launch.hosts = "n[0-3]";
  EXPECT_TRUE(PlanGateways(launch, 4).is_gateway);
}

TEST(GatewayPlans, ThePortsAreOfTheRangeAndOfTheKey) {
  const auto ports = GatewayPorts(GatewayKey(), 7, {60'000, 60'999});
  ASSERT_THAT(ports, SizeIs(3));
  for (const uint16_t port : ports) EXPECT_TRUE(port >= 60'000 && port <= 60'999) << port;
  EXPECT_EQ(GatewayPorts(GatewayKey(), 7, {60'000, 60'999}), ports);
  EXPECT_NE(GatewayPorts(GatewayKey(), 8, {60'000, 60'999}), ports);
  EXPECT_NE(GatewayPorts(GatewayKey(2), 7, {60'000, 60'999}), ports);
  EXPECT_THAT(GatewayPorts(GatewayKey(), 7, {60'000, 60'000}), ElementsAre(60'000));
  for (const uint16_t port : GatewayPorts(GatewayKey(), 7, {0, 0})) {
    EXPECT_TRUE(port >= kGatewayPorts.first && port <= kGatewayPorts.second) << port;
  }
}

// --- The way ---

// A head that welcomes whoever comes, and one node that looks for it.
class GatewayWays : public testing::Test, public HeadLink::Owner {
 protected:
  tree::Registration registration() const override { return {.nodes = 9, .host = "n5"}; }
  void OnWelcome(const tree::Welcome& welcome, Nanos /*waited*/) override {
    index_ = welcome.index;
    ++welcomes_;
  }
  void OnHeadMessage(Type type, std::string_view payload) override {
    messages_.push_back({static_cast<uint8_t>(type), std::string(payload)});
  }
  void OnHeadLost(tree::Link& /*link*/, const Status& /*why*/) override { ++losses_; }
  void OnNoHead(const Status& why) override { ended_ = why.message(); }
  void OnOver() override { ended_ = "the step is over"; }
  bool IsSuspended() const override { return false; }
  bool BecomeHead() override { return false; }
  void Note(std::string text) override { notes_.push_back(std::move(text)); }

  // What the head has of a gateway or a node that came by itself.
  struct HeadEnd {
    std::unique_ptr<tree::Link> link;
    std::shared_ptr<tree::ViaLinks> via;
  };

  GatewayWays() {
    auto opened = tree::Listener::Open(
        loop_, "127.0.0.1", {0, 0},
        [this](std::unique_ptr<tree::SocketLink> link) { acceptor_.Take(std::move(link)); });
    EXPECT_TRUE(opened.ok()) << opened.status().message();
    listener_ = *std::move(opened);
  }
  void Welcome(std::unique_ptr<tree::Link> link, bool through_gateway) {
    through_gateway_ += through_gateway;
    Send(*link, Type::kWelcome, Encode(tree::Welcome{.index = 7}));
    auto end = std::make_shared<tree::End>();
    end->Own(std::move(link));
    ends_.push_back(std::move(end));
  }

  // A gateway, with a connection of its own to the head.
  struct Porter {
    explicit Porter(GatewayWays& all, uint32_t number)
        : gateway(all.loop_, GatewayKey(), number, [this] { ++left; }) {
      auto [node, head] = tree::LocalLink::MakePair(all.loop_, "head", "gateway");
      own = std::move(node);
      own->SetMaxMessage(tree::kMaxMessage);
      own->SetHandler({[this](uint8_t type, std::string_view payload) {
                         gateway.OnHeadMessage(static_cast<Type>(type), payload);
                       },
                       [this](const Status&) { gateway.OnHeadLost(); }});
      at_head = std::move(head);
      via = std::make_shared<tree::ViaLinks>(
          all.loop_, *at_head, [&all](const tree::Registration&, std::unique_ptr<tree::Link> link) {
            all.Welcome(std::move(link), true);
          });
      at_head->SetMaxMessage(tree::kMaxMessage);
      at_head->SetHandler({[this](uint8_t type, std::string_view payload) {
                             EXPECT_TRUE(via->OnMessage(static_cast<Type>(type), payload).ok());
                           },
                           [this](const Status&) { via->Lose(); }});
      ports = {FreePort(), FreePort()};
    }
    void Open() {
      const Status opened = gateway.Open(*own, "127.0.0.1", ports);
      EXPECT_TRUE(opened.ok()) << opened.message();
    }
    static uint16_t FreePort() {
      const auto socket = tree::ListenAt("127.0.0.1", {0, 0});
      return tree::PortOf(tree::LocalAddress(socket->get()));
    }
    std::vector<tree::Place> Doors(uint32_t number) const {
      return {{number, "127.0.0.1", ports[0]}, {number, "127.0.0.1", ports[1]}};
    }
    Gateway gateway;
    std::unique_ptr<tree::Link> own;
    std::unique_ptr<tree::Link> at_head;
    std::shared_ptr<tree::ViaLinks> via;
    std::vector<uint16_t> ports;
    int left = 0;
  };

  void Connect(HeadLink& node, std::vector<std::vector<tree::Place>> ways) {
    node.Connect("127.0.0.1", listener_->port(), std::move(ways));
  }
  void RunUntilWelcome(int welcomes = 1) {
    EXPECT_TRUE(tree::RunUntil(loop_, [&] { return welcomes_ >= welcomes || ended_.has_value(); }));
    EXPECT_EQ(ended_, std::nullopt);
  }

  Loop loop_;
  std::optional<uint32_t> index_;
  std::optional<std::string> ended_;
  std::vector<tree::Message> messages_;
  std::vector<std::string> notes_;
  int welcomes_ = 0;
  int losses_ = 0;
  int through_gateway_ = 0;
  std::vector<std::shared_ptr<tree::End>> ends_;
  tree::Acceptor acceptor_{loop_, GatewayKey(), tree::Channel(),
                           [this](const tree::Registration&, std::unique_ptr<tree::Link> link) {
                             Welcome(std::move(link), false);
                           }};
  std::unique_ptr<tree::Listener> listener_;
};

TEST_F(GatewayWays, WhatIsSaidGoesThrough) {
  Porter porter(*this, 3);
  porter.Open();
  HeadLink node(loop_, GatewayKey(), *this);
  Connect(node, {porter.Doors(3)});
  RunUntilWelcome();
  EXPECT_EQ(index_, 7u);
  EXPECT_EQ(through_gateway_, 1);
  EXPECT_EQ(node.local_host(), "127.0.0.1");
  const std::string much(1u << 20, 'x');
  EXPECT_TRUE(node.Send(Type::kNote, much));
  ASSERT_TRUE(tree::RunUntil(loop_, [&] { return ends_[0]->messages.size() == 1; }));
  EXPECT_EQ(ends_[0]->messages[0].payload, much);
  EXPECT_TRUE(Send(*ends_[0]->link, Type::kCounters, much));
  ASSERT_TRUE(tree::RunUntil(loop_, [&] { return messages_.size() == 1; }));
  EXPECT_EQ(messages_[0].payload, much);
}

// Nodes do not begin in one moment.
TEST_F(GatewayWays, AGatewayThatBeginsLaterIsWaitedFor) {
  Porter porter(*this, 3);
  HeadLink node(loop_, GatewayKey(), *this);
  Connect(node, {porter.Doors(3)});
  loop_.After(4 * HeadLink::kGatewayPause, [&] { porter.Open(); });
  RunUntilWelcome();
  EXPECT_EQ(through_gateway_, 1);
}

TEST_F(GatewayWays, APortThatSomebodyElseHasIsPassedOver) {
  Porter porter(*this, 3);
  auto other = tree::Listener::Open(loop_, "127.0.0.1", {porter.ports[0], porter.ports[0]},
                                    [this](std::unique_ptr<tree::SocketLink> link) {
                                      tree::DestroyLater(loop_, std::move(link));
                                    });
  ASSERT_TRUE(other.ok());
  porter.Open();
  HeadLink node(loop_, GatewayKey(), *this);
  Connect(node, {porter.Doors(3)});
  RunUntilWelcome();
  EXPECT_EQ(through_gateway_, 1);
}

TEST_F(GatewayWays, WithoutAGatewayTheNodeComesToTheHead) {
  Porter nobody(*this, 3);
  HeadLink node(loop_, GatewayKey(), *this);
  const Nanos start = Clock::System().Monotonic();
  Connect(node, {nobody.Doors(3), nobody.Doors(4)});
  RunUntilWelcome();
  EXPECT_EQ(through_gateway_, 0);
  EXPECT_GE(Clock::System().Monotonic() - start, HeadLink::kGatewaySearch);
}

TEST_F(GatewayWays, WhenItsTasksEndANodeSeeksNoMore) {
  Porter nobody(*this, 3);
  HeadLink node(loop_, GatewayKey(), *this);
  const Nanos start = Clock::System().Monotonic();
  Connect(node, {nobody.Doors(3)});
  loop_.Post([&] { node.OnTasksEnded(); });
  RunUntilWelcome();
  EXPECT_EQ(through_gateway_, 0);
  EXPECT_LT(Clock::System().Monotonic() - start, HeadLink::kGatewaySearch);
}

// Another node that knows the key is not the gateway.
TEST_F(GatewayWays, WhoIsNotTheGatewayIsNotTaken) {
  Porter porter(*this, 4);
  porter.Open();
  HeadLink node(loop_, GatewayKey(), *this);
  Connect(node, {porter.Doors(3)});
  RunUntilWelcome();
  EXPECT_EQ(through_gateway_, 0);
}

TEST_F(GatewayWays, WithoutTheKeyNobodyComesThrough) {
  Porter porter(*this, 3);
  porter.Open();
  HeadLink node(loop_, GatewayKey(2), *this);
  Connect(node, {porter.Doors(3)});
  EXPECT_TRUE(tree::RunUntil(loop_, [&] { return ended_.has_value(); }));
  EXPECT_EQ(ended_, "the peer does not know the step's key");
  EXPECT_EQ(through_gateway_, 0);
  EXPECT_EQ(porter.gateway.connections(), 0u);
}

// A node that has come through the first of two gateways.
class TwoGateways : public GatewayWays {
 protected:
  TwoGateways() {
    first.Open();
    second.Open();
    Connect(node, {first.Doors(3), second.Doors(4)});
    RunUntilWelcome();
  }
  Porter first{*this, 3};
  Porter second{*this, 4};
  HeadLink node{loop_, GatewayKey(), *this};
};

TEST_F(TwoGateways, WhenTheGatewayGoesAnotherOneServes) {
  first.gateway.Leave();
  RunUntilWelcome(2);
  EXPECT_EQ(losses_, 1);
  EXPECT_EQ(through_gateway_, 2);
  EXPECT_EQ(second.gateway.connections(), 1u);
  ASSERT_TRUE(tree::RunUntil(loop_, [&] { return first.left == 1; }));
  second.gateway.Leave();
  RunUntilWelcome(3);
  EXPECT_EQ(through_gateway_, 2);  // it knows no more
}

// It may be the head that is lost.
TEST_F(TwoGateways, WhoseConnectionBreaksComesToTheHead) {
  first.gateway.OnHeadLost();
  RunUntilWelcome(2);
  EXPECT_EQ(through_gateway_, 1);
  EXPECT_EQ(second.gateway.connections(), 0u);
}

TEST_F(GatewayWays, WhatTheHeadClosesIsClosedForTheNode) {
  Porter porter(*this, 3);
  porter.Open();
  HeadLink node(loop_, GatewayKey(), *this);
  Connect(node, {porter.Doors(3)});
  RunUntilWelcome();
  Send(*ends_[0]->link, Type::kOver, "");
  ends_[0]->link.reset();
  ASSERT_TRUE(tree::RunUntil(loop_, [&] { return ended_.has_value(); }));
  EXPECT_EQ(ended_, "the step is over");
  ASSERT_TRUE(tree::RunUntil(loop_, [&] { return porter.left == 1; }));
}

TEST_F(GatewayWays, WhoLeavesIsGoneForTheHead) {
  Porter porter(*this, 3);
  porter.Open();
  auto node = std::make_unique<HeadLink>(loop_, GatewayKey(), *this);
  Connect(*node, {porter.Doors(3)});
  RunUntilWelcome();
  node.reset();
  ASSERT_TRUE(tree::RunUntil(loop_, [&] { return ends_[0]->closed == 1; }));
  EXPECT_EQ(porter.left, 1);
}

// A gateway whose kernel takes what nodes send, and nothing comes back.
class HungGateways : public GatewayWays {
 protected:
  void ComeThroughIt() {
    Connect(node_, {{{3, "127.0.0.1", listener_->port()}}});
    RunUntilWelcome();
    ASSERT_THAT(hung_, SizeIs(1));
  }
  void ExpectLeft() {
    RunUntilWelcome(2);
    EXPECT_EQ(losses_, 1);
    EXPECT_THAT(ends_, SizeIs(1)) << "it has come to the head itself";
    ASSERT_THAT(notes_, SizeIs(1));
    EXPECT_THAT(notes_[0], testing::HasSubstr("its gateway 127.0.0.1 did not answer"));
  }

  std::vector<std::unique_ptr<tree::Link>> hung_;
  tree::Acceptor door_{loop_,
                       GatewayKey(),
                       {tree::Channel::Purpose::kGateway, 3, ""},
                       [this](const tree::Registration&, std::unique_ptr<tree::Link> link) {
                         Send(*link, Type::kWelcome, Encode(tree::Welcome{.index = 7}));
                         hung_.push_back(std::move(link));
                       }};
  std::unique_ptr<tree::Listener> listener_ = *tree::Listener::Open(
      loop_, "127.0.0.1", {0, 0},
      [this](std::unique_ptr<tree::SocketLink> link) { door_.Take(std::move(link)); });
  HeadLink node_{loop_, GatewayKey(), *this};
};

TEST_F(HungGateways, AreLeftWhenSomethingWasSent) {
  ComeThroughIt();
  EXPECT_TRUE(node_.Send(Type::kNote, "something"));
  ExpectLeft();
}

// The goodbye, which may have to wait, is to find the way.
TEST_F(HungGateways, AreLeftWhenTheTasksHaveEnded) {
  ComeThroughIt();
  node_.OnTasksEnded();
  ExpectLeft();
}

// To most of what a node says the head has no answer; the gateway has one.
TEST_F(GatewayWays, AGatewayThatIsThereIsKept) {
  Porter porter(*this, 3);
  porter.Open();
  HeadLink node(loop_, GatewayKey(), *this);
  Connect(node, {porter.Doors(3)});
  RunUntilWelcome();
  bool passed = false;
  const auto stop =
      loop_.After(HeadLink::kGatewayWord + 2 * HeadLink::kGatewayPatience, [&] { passed = true; });
  EXPECT_TRUE(node.Send(Type::kNote, "something"));
  ASSERT_TRUE(tree::RunUntil(loop_, [&] { return passed; }));
  loop_.Cancel(stop);
  EXPECT_EQ(losses_, 0);
  EXPECT_THAT(notes_, IsEmpty());
  EXPECT_THAT(ends_[0]->messages, SizeIs(1)) << "the question is the gateway's alone";
}

// Nobody is silent because nobody ran.
TEST_F(GatewayWays, AMachineThatStoodStillKeepsItsGateway) {
  Porter porter(*this, 3);
  porter.Open();
  HeadLink node(loop_, GatewayKey(), *this);
  Connect(node, {porter.Doors(3)});
  RunUntilWelcome();
  EXPECT_TRUE(node.Send(Type::kNote, "something"));
  bool passed = false;
  // When the question is under way, and when its answer should have come.
  loop_.After(HeadLink::kGatewayWord + kMillisecond, [&] {
    std::this_thread::sleep_for(std::chrono::nanoseconds(HeadLink::kGatewayPatience + kSecond));
    loop_.After(HeadLink::kGatewayPatience, [&] { passed = true; });
  });
  ASSERT_TRUE(tree::RunUntil(loop_, [&] { return passed; }));
  EXPECT_EQ(losses_, 0);
  EXPECT_THAT(notes_, IsEmpty());
}

// A connection to the head that takes nothing while it is full.
class NarrowLink final : public tree::Link {
 public:
  Status Send(uint8_t type, std::string_view payload) override {
    if (full) return {Code::kLimit, "full"};
    sent.push_back({type, std::string(payload)});
    return {};
  }
  void CloseWhenSent() override {}
  size_t queued() const override { return 0; }
  void SetMaxMessage(size_t) override {}
  std::string peer() const override { return "head"; }
  bool full = true;
  std::vector<tree::Message> sent;
};

TEST_F(GatewayWays, WhatTheHeadDoesNotTakeNowCostsNobodyElse) {
  Porter porter(*this, 3);
  NarrowLink narrow;
  ASSERT_TRUE(porter.gateway.Open(narrow, "127.0.0.1", porter.ports).ok());
  auto node = std::make_unique<HeadLink>(loop_, GatewayKey(), *this);
  Connect(*node, {porter.Doors(3)});
  // It tries again, and is the first that the head hears of.
  loop_.After(2 * HeadLink::kGatewayPause, [&] { narrow.full = false; });
  ASSERT_TRUE(tree::RunUntil(loop_, [&] { return porter.gateway.connections() == 1; }));
  ASSERT_THAT(narrow.sent, SizeIs(1));
  tree::ViaOpen open;
  ASSERT_TRUE(Decode(narrow.sent[0].payload, open).ok());
  EXPECT_EQ(open.channel, 0u);
  // Its end is told as soon as the head takes something.
  narrow.full = true;
  node.reset();
  ASSERT_TRUE(tree::RunUntil(loop_, [&] { return porter.gateway.connections() == 0; }));
  EXPECT_THAT(narrow.sent, SizeIs(1));
  narrow.full = false;
  porter.gateway.OnHeadMessage(Type::kVia, tree::EncodeVia({0, 1, ""}));
  ASSERT_THAT(narrow.sent, SizeIs(2));
  EXPECT_EQ(narrow.sent[1].type, static_cast<uint8_t>(Type::kViaClose));
  porter.gateway.OnHeadLost();
}

}  // namespace
}  // namespace sonde::node
