// What whoever receives frames says of them: that the head has them, and when it says so.
//
// Nodes are the product's uplinks, the receiver is the product's Children; what is under way lies
// in queues, and arrives when a test says so. Ticks lie in the future, so that each waits for all
// who take part.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/bytes.h"
#include "daemon/loop.h"
#include "daemon/tree/children/children.h"
#include "daemon/tree/query_fanout.h"
#include "daemon/tree/tick_merger.h"
#include "daemon/tree/uplink.h"
#include "queue_link.h"
#include "tree_owners.h"

namespace sonde::tree::tree_acknowledgement_test {
namespace {

// Whoever is between two links is waited for all the time that a test takes.
constexpr Nanos kHandOver = 7200 * kSecond;

struct Connection {
  QueueLink child_end;   // what the child sends
  QueueLink parent_end;  // and the parent
};

Schema::Ptr Work() {
  Series series;
  series.metric.name = "work_total";
  series.metric.type = MetricType::kCounter;
  return Schema::Make({series});
}

// It has whatever comes.
class HasAll final : public ChildrenAlone {
 public:
  explicit HasAll(std::unique_ptr<Children>& children) : children_(children) {}
  void OnEnded(const FrameInfo& /*header*/, const Schema::Ptr& /*schema*/,
               std::span<const Reduced> /*values*/, TickMerger::Source source) override {
    children_->Forwarded({&source, 1}, 0);
  }
  void OnRefused(TickMerger::Fate /*fate*/, const Frame& /*frame*/,
                 TickMerger::Source source) override {
    children_->Forwarded({&source, 1}, 0);
  }

 private:
  std::unique_ptr<Children>& children_;
};

class AcknowledgedFrames : public testing::Test {
 protected:
  struct Node {
    explicit Node(uint32_t i) : index(i) {}
    uint32_t index;
    Uplink uplink;
    uint64_t acked = 0;
    uint64_t safe = 0;
  };

  // At the head: it needs nobody's word that it has a row.
  void StartHead(Keep keep = Keep::kUntilSafe) {
    merger_ = std::make_unique<TickMerger>(16, [this](const TickMerger::Row& row, bool) {
      rows_.push_back(row.tick);
      children_->Forwarded(row.sources, 0);
    });
    children_ = std::make_unique<Children>(*merger_, queries_,
                                           FrameIntake::Pace{kSecond, kHandOver}, keep, owner_);
  }

  Connection& Connect(const Node& node) {
    Connection& made = *connections_.emplace_back(std::make_unique<Connection>());
    children_->Add(made.parent_end, node.index);
    return made;
  }

  // Its first; ticks wait for it from now on.
  Connection& Join(Node& node) {
    Connection& made = Connect(node);
    node.uplink.Announce(Stream::kOwn, schema_);
    node.uplink.Use(&made.child_end, false);
    Deliver(made, node);
    return made;
  }

  // What the node has sent over it arrives, and what that is answered with.
  void Deliver(Connection& over, Node& node) {
    while (!over.child_end.queue.empty()) {
      const auto [type, payload] = std::move(over.child_end.queue.front());
      over.child_end.queue.pop_front();
      ASSERT_TRUE(children_->OnMessage(over.parent_end, type, payload).ok());
    }
    Hear(over, node);
  }

  void Hear(Connection& over, Node& node) {
    for (const auto& [type, payload] : std::exchange(over.parent_end.queue, {})) {
      if (type != Type::kAck) continue;
      ByteReader r(payload);
      node.acked = r.Varint();
      node.safe = r.left() > 0 ? r.Varint() : node.acked;
      node.uplink.OnAck(node.acked, node.safe);
    }
  }

  void Sample(Node& node, int tick) { Send(node, Stream::kOwn, first_tick_ + tick * kSecond); }
  void End(Node& node, int tick) {
    Send(node, Stream::kEnded, first_tick_ + tick * kSecond + 1);
    node.uplink.End(Stream::kOwn);
  }

  Loop loop_;
  QueryFanout queries_{loop_};
  std::unique_ptr<TickMerger> merger_;
  std::unique_ptr<Children> children_;
  HasAll owner_{children_};
  std::vector<Nanos> rows_;

 private:
  void Send(Node& node, Stream stream, Nanos tick) {
    FrameInfo info;
    info.tick = tick;
    info.stream = stream;
    info.nodes = NodeSet(node.index);
    std::vector<Reduced> values(1);
    values[0].Add(static_cast<double>(tick), {node.index, Owner::kNobody});
    node.uplink.AddFrame(info, schema_, {values, {}});
    node.uplink.Flush();
  }

  const Schema::Ptr schema_ = Work();
  const Nanos first_tick_ = Clock::System().Now() + 3600 * kSecond;
  std::vector<std::unique_ptr<Connection>> connections_;
};

// The first word over the new link may overtake the last over the old one: these are two sockets.
// The ticks of that time wait for what may still come over the old link; nobody's end does.
TEST_F(AcknowledgedFrames, ANodeThatEndsWhileItsLinksMoveIsToldAtOnce) {
  StartHead();
  Node first(0);
  Node second(1);
  Connection& control = Join(first);
  Connection& others = Join(second);
  Sample(first, 1);
  Sample(second, 1);
  Deliver(control, first);
  Deliver(others, second);
  ASSERT_EQ(rows_.size(), 1u);

  Connection& parent = Connect(first);
  first.uplink.Use(&parent.child_end, true);
  Sample(first, 2);
  Deliver(parent, first);
  Deliver(control, first);  // that it has left
  Sample(second, 2);
  Deliver(others, second);
  End(first, 2);
  Deliver(parent, first);
  EXPECT_EQ(first.acked, first.uplink.last_number());
  EXPECT_TRUE(first.uplink.frames_delivered());
  End(second, 2);
  Deliver(others, second);
  EXPECT_TRUE(second.uplink.frames_delivered());
  EXPECT_TRUE(children_->done());
}

// A node that goes on over another link is waited for there and not over both.
TEST_F(AcknowledgedFrames, TicksDoNotWaitForTheLinkThatANodeHasLeft) {
  StartHead();
  Node node(0);
  Connection& control = Join(node);
  Sample(node, 1);
  Deliver(control, node);
  Connection& parent = Connect(node);
  node.uplink.Use(&parent.child_end, true);
  Sample(node, 2);
  Deliver(parent, node);
  EXPECT_EQ(rows_.size(), 1u) << "there may be something of it under way";
  Deliver(control, node);
  EXPECT_EQ(rows_.size(), 2u);
}

// Of two nodes one has sent its second sample, or is about to, and the other one has not.
class OneOwes : public AcknowledgedFrames {
 protected:
  void Begin(Keep keep = Keep::kUntilSafe) {
    StartHead(keep);
    to_quick_ = &Join(quick_);
    to_slow_ = &Join(slow_);
    Sample(slow_, 1);
    Deliver(*to_slow_, slow_);
    Sample(quick_, 1);
    Sample(quick_, 2);
  }

  Node quick_{0};
  Node slow_{1};
  Connection* to_quick_ = nullptr;
  Connection* to_slow_ = nullptr;
};

TEST_F(OneOwes, AtTheHeadNobodysEndWaitsForWhatOthersOwe) {
  Begin();
  Deliver(*to_quick_, quick_);
  ASSERT_EQ(rows_.size(), 1u);
  End(quick_, 2);
  Deliver(*to_quick_, quick_);
  EXPECT_TRUE(quick_.uplink.frames_delivered());
  EXPECT_EQ(rows_.size(), 1u) << "the second one is still expected of the other";
}

// Another head would not have what lies in a tick that still waits here.
TEST_F(OneOwes, WhatIsInATickThatWaitsHasArrivedAndIsNotSafe) {
  Begin();
  Deliver(*to_quick_, quick_);
  const auto store = [&] {
    children_->BeginSafe();
    children_->EndSafe();
    children_->Pulse();
    Hear(*to_quick_, quick_);
  };
  store();
  EXPECT_EQ(quick_.acked, 2u);
  EXPECT_EQ(quick_.safe, 1u);
  Sample(slow_, 2);
  Deliver(*to_slow_, slow_);
  store();
  EXPECT_EQ(quick_.safe, 2u);
}

// As at a node that hands on: what it merged has arrived when the head says so of the row.
TEST_F(OneOwes, WhatWasInATickWhenItsNodeEndedIsToldOfWithTheTick) {
  Begin(Keep::kUntilArrived);
  End(quick_, 2);
  Deliver(*to_quick_, quick_);
  EXPECT_FALSE(quick_.uplink.frames_delivered());
  EXPECT_FALSE(children_->done());
  Sample(slow_, 2);
  Deliver(*to_slow_, slow_);
  ASSERT_EQ(rows_.size(), 2u);
  children_->Acknowledged(0);  // of what went up
  Hear(*to_quick_, quick_);
  EXPECT_TRUE(quick_.uplink.frames_delivered());
}

// A child of a later release is no reason to lose its link.
TEST(Children, PassOverATypeOfMessageThatTheyDoNotKnow) {
  Loop loop;
  QueryFanout queries(loop);
  TickMerger merger(16, [](const TickMerger::Row&, bool) {});
  ChildrenAlone alone;
  Children children(merger, queries, {kSecond, kSecond}, Keep::kUntilArrived, alone);
  QueueLink link;
  children.Add(link, 3);
  EXPECT_TRUE(children.OnMessage(link, static_cast<Type>(200), "of a later release").ok());
  EXPECT_FALSE(children.OnMessage(link, Type::kFrame, "no frame").ok());
}

// Stored blocks are told of with the pulse, in one packet; what a node waits for at once.
TEST(BlockAcks, WaitForThePulseUnlessTheNodeIsInAHurry) {
  Loop loop;
  QueryFanout queries(loop);
  TickMerger merger(16, [](const TickMerger::Row&, bool) {});
  ChildrenAlone alone;
  Children children(merger, queries, {kSecond, kSecond}, Keep::kUntilArrived, alone);
  QueueLink link;
  children.Add(link, 3);
  const std::string schema = std::string(1, static_cast<char>(Stream::kOwn)) + PackSchema(*Work());
  ASSERT_TRUE(children.OnMessage(link, Type::kSchema, schema).ok());
  const auto block = [&](uint64_t sequence, bool hurry) {
    BlockMessage message;
    message.node = 3;
    message.group = "os";
    message.sequence = message.first = sequence;
    message.hurry = hurry;
    std::string payload;
    AppendTo(payload, message);
    ASSERT_TRUE(children.OnMessage(link, Type::kBlock, payload).ok());
  };
  const auto types = [&] {
    std::vector<Type> all;
    for (const auto& [type, payload] : std::exchange(link.queue, {})) all.push_back(type);
    return all;
  };
  block(1, false);
  children.SendBlockAck({3, "os", 1, BlockAck::kStored, false});
  children.FlushBlockAcks();
  EXPECT_EQ(types(), std::vector<Type>());
  children.Pulse();
  EXPECT_EQ(types(), (std::vector<Type>{Type::kBlockAck, Type::kAck}));
  children.Pulse();
  EXPECT_EQ(types(), std::vector<Type>{Type::kAck});
  children.SendBlockAck({3, "os", 1, BlockAck::kStored, true});
  children.FlushBlockAcks();
  EXPECT_EQ(types(), std::vector<Type>{Type::kBlockAck});
  children.SendBlockAck({3, "os", 1, BlockAck::kUnknownSchema, false});
  children.FlushBlockAcks();
  EXPECT_EQ(types(), std::vector<Type>{Type::kBlockAck});
}

}  // namespace
}  // namespace sonde::tree::tree_acknowledgement_test
