// Frames on their way through trees whose links and nodes fail: every node counts once.
#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <memory>
#include <random>
#include <set>

#include "core/bytes.h"
#include "daemon/loop.h"
#include "daemon/tree/children.h"
#include "daemon/tree/ended_nodes.h"
#include "daemon/tree/query_fanout.h"
#include "daemon/tree/relay.h"
#include "daemon/tree/tick_merger.h"

namespace sonde::tree {
namespace {

constexpr uint32_t kHead = kHeadIndex;

// One direction of a connection; cut, it swallows everything and tells nobody.
struct Pipe {
  std::deque<std::pair<Type, std::string>> messages;
  bool cut = false;
};

// One end of a connection: what it sends goes into a pipe.
class PipeLink : public Link {
 public:
  explicit PipeLink(std::shared_ptr<Pipe> out) : out_(std::move(out)) {}
  Status Send(uint8_t type, std::string_view payload) override {
    if (!out_->cut) out_->messages.emplace_back(static_cast<Type>(type), payload);
    return {};
  }
  void CloseWhenSent() override {}
  size_t queued() const override { return stuck ? Uplink::kSlowLink + 1 : 0; }
  void SetMaxMessage(size_t) override {}
  std::string peer() const override { return "peer"; }

  bool stuck = false;

 private:
  std::shared_ptr<Pipe> out_;
};

struct Connection {
  explicit Connection(uint32_t to) : parent(to) {}
  uint32_t parent;
  std::shared_ptr<Pipe> up = std::make_shared<Pipe>();
  std::shared_ptr<Pipe> down = std::make_shared<Pipe>();
  PipeLink child_end{up};
  PipeLink parent_end{down};
};

Series Named(const char* name, MetricType type) {
  Series series;
  series.metric.name = name;
  series.metric.type = type;
  return series;
}

// A step: nodes with the product's relays, a head that merges as the head does, and pipes between.
class Step {
 public:
  Step(uint32_t nodes, uint32_t fanout, unsigned seed) : random_(seed), fanout_(fanout) {
    for (uint32_t i = 0; i < nodes; ++i) {
      nodes_.push_back(std::make_unique<Node>(loop_));
      nodes_[i]->relay.SetNode(i);
      Connect(i, ParentOf(i));
    }
  }

  // Every node that is there takes a sample: its counter, and a gauge that says who it is.
  void Tick() {
    tick_ += kSecond;
    for (uint32_t i = 0; i < nodes_.size(); ++i) {
      Node& node = *nodes_[i];
      if (!node.running) continue;
      node.counted += static_cast<double>(random_() % 100);
      node.relay.SendOwn(tick_, schema_, Values(i));
      node.ticks.insert(tick_);
    }
  }

  // The tasks of this one are done: it takes its children's data elsewhere and leaves.
  void End(uint32_t index) {
    Node& node = *nodes_[index];
    node.counted += 1000;
    node.relay.SendOwnEnd(tick_ + 1, schema_, Values(index));
    node.running = false;
    node.ended = true;
    for (uint32_t i = 0; i < nodes_.size(); ++i) {
      if (nodes_[i]->link != nullptr && nodes_[i]->link->parent == index) Connect(i, Living(index));
    }
    node.relay.OnChildrenChanged();
    node.relay.SendRest();
  }

  // Killed: its links end, its children go elsewhere.
  void Kill(uint32_t index) {
    Node& node = *nodes_[index];
    node.running = false;
    node.killed = true;
    Unlink(index);
    const uint32_t parent = Living(index);
    for (uint32_t i = 0; i < nodes_.size(); ++i) {
      if (nodes_[i]->link != nullptr && nodes_[i]->link->parent == index) Connect(i, parent);
    }
  }

  // What is under way between a node and its parent vanishes, both live on.
  void Cut(uint32_t index) {
    if (nodes_[index]->link == nullptr) return;
    nodes_[index]->link->up->cut = nodes_[index]->link->down->cut = true;
    nodes_[index]->link->up->messages.clear();
    nodes_[index]->link->down->messages.clear();
    Connect(index, random_() % 2 == 0 ? kHead : Living(nodes_[index]->link->parent));
  }

  // A message arrives somewhere. False if none is under way.
  bool Deliver() {
    std::vector<std::pair<uint32_t, bool>> ready;
    for (uint32_t i = 0; i < nodes_.size(); ++i) {
      if (nodes_[i]->link == nullptr) continue;
      if (!nodes_[i]->link->up->messages.empty()) ready.emplace_back(i, true);
      if (!nodes_[i]->link->down->messages.empty()) ready.emplace_back(i, false);
    }
    if (ready.empty()) return false;
    const auto [index, up] = ready[random_() % ready.size()];
    Connection& link = *nodes_[index]->link;
    auto& pipe = up ? link.up : link.down;
    const auto [type, payload] = std::move(pipe->messages.front());
    pipe->messages.pop_front();
    if (!up) {
      OnWord(index, type, payload);
    } else if (link.parent == kHead) {
      EXPECT_TRUE(head_children_.OnMessage(link.parent_end, type, payload).ok());
    } else {
      Relay& parent = nodes_[link.parent]->relay;
      EXPECT_TRUE(parent.children().OnMessage(link.parent_end, type, payload).ok());
      parent.OnChildrenChanged();
    }
    return true;
  }

  // Waiting ticks' time is up.
  void Expire(uint32_t index) {
    if (nodes_[index]->here()) nodes_[index]->relay.SendRest();
  }
  void Pulse() {
    head_children_.Pulse();
    for (auto& node : nodes_) {
      if (node->here()) node->relay.children().Pulse();
    }
  }
  void Stick(uint32_t index, bool stuck) {
    if (nodes_[index]->link != nullptr) nodes_[index]->link->child_end.stuck = stuck;
  }

  // Until nothing is under way and nobody waits for anything.
  void Drain() {
    for (int quiet = 0; quiet < 3; ++quiet) {
      while (Deliver()) quiet = 0;
      for (uint32_t i = 0; i < nodes_.size(); ++i) Expire(i);
      head_.EmitUpTo(INT64_MAX);
      head_children_.HandOnLost(INT64_MAX);
      Pulse();
    }
  }

  void Check(bool every_tick) {
    double total = 0;
    for (uint32_t i = 0; i < nodes_.size(); ++i) {
      const Node& node = *nodes_[i];
      if (node.ended) total += node.counted;
      if (node.ended && !node.killed) {
        EXPECT_TRUE(node.relay.uplink().frames_delivered()) << i;
        EXPECT_TRUE(ended_.Has(i)) << i;
      }
    }
    for (const auto& [node, known] : lost_) {
      EXPECT_LE(known, nodes_[node]->counted) << node;
      if (!nodes_[node]->ended) total += known;
    }
    EXPECT_EQ(ended_.Final(2)[0].sum, total);
    uint64_t missing = 0;
    for (uint32_t i = 0; i < nodes_.size(); ++i) {
      if (nodes_[i]->killed) continue;
      for (const Nanos tick : nodes_[i]->ticks) missing += rows_[tick].Has(i) ? 0 : 1;
      if (every_tick) continue;
      missing -= std::min(missing, nodes_[i]->relay.uplink().lost_frames());
    }
    EXPECT_LE(missing, overlaps_) << "samples of nodes that lived to the end";
  }
  uint64_t overlaps() const { return overlaps_; }

  bool running(uint32_t index) const { return nodes_[index]->running; }
  uint32_t size() const { return static_cast<uint32_t>(nodes_.size()); }
  uint32_t Any() { return static_cast<uint32_t>(random_() % nodes_.size()); }
  unsigned Random(unsigned n) { return static_cast<unsigned>(random_() % n); }

 private:
  struct Node {
    explicit Node(Loop& loop)
        : queries(loop),
          relay(loop, queries, kSecond,
                {.block = [](const BlockMessage&) {}, .before_frames = [] {}}) {}
    bool here() const { return !killed; }

    QueryFanout queries;
    Relay relay;
    std::unique_ptr<Connection> link;
    bool running = true;
    bool ended = false;
    bool killed = false;
    double counted = 0;
    std::set<Nanos> ticks;
  };

  uint32_t ParentOf(uint32_t i) const { return i < fanout_ ? kHead : i / fanout_ - 1; }
  // The nearest ancestor that runs.
  uint32_t Living(uint32_t index) const {
    if (index == kHead) return kHead;
    do {
      index = ParentOf(index);
    } while (index != kHead && !nodes_[index]->running);
    return index;
  }

  std::vector<Reduced> Values(uint32_t index) const {
    const Owner owner{index, Owner::kNobody};
    std::vector<Reduced> values(2);
    values[0].Add(nodes_[index]->counted, owner);
    values[1].Add(std::ldexp(1, static_cast<int>(index)), owner);
    return values;
  }

  void Unlink(uint32_t index) {
    std::unique_ptr<Connection> old = std::move(nodes_[index]->link);
    if (old == nullptr) return;
    nodes_[index]->relay.uplink().Forget(&old->child_end);
    if (old->parent == kHead) {
      head_children_.Remove(old->parent_end);
    } else if (nodes_[old->parent]->here()) {
      nodes_[old->parent]->relay.children().Remove(old->parent_end);
      nodes_[old->parent]->relay.OnChildrenChanged();
    }
    graveyard_.push_back(std::move(old));  // the uplink holds a pointer until it has another
  }

  void Connect(uint32_t index, uint32_t parent) {
    Unlink(index);
    Node& node = *nodes_[index];
    node.link = std::make_unique<Connection>(parent);
    Children& children = parent == kHead ? head_children_ : nodes_[parent]->relay.children();
    children.Add(node.link->parent_end, index);
    node.relay.uplink().Use(&node.link->child_end, false);
  }

  void OnWord(uint32_t index, Type type, const std::string& payload) {
    ByteReader r(payload);
    const uint64_t number = r.Varint();
    EXPECT_TRUE(r.done());
    if (type == Type::kAck) nodes_[index]->relay.OnAck(number, number);
    if (type != Type::kRefused) return;
    for (Link* link : nodes_[index]->relay.OnRefused(number)) {
      for (uint32_t i = 0; i < nodes_.size(); ++i) {
        if (nodes_[i]->link != nullptr && &nodes_[i]->link->parent_end == link) Connect(i, kHead);
      }
    }
  }

  void OnRow(const TickMerger::Row& row, bool late) {
    head_children_.HandOnLost(row.tick, row.nodes);
    head_children_.Forwarded(row.sources, 0);
    double nodes = 0;
    for (uint32_t i = 0; i < nodes_.size(); ++i) {
      if (row.nodes.Has(i)) nodes += std::ldexp(1, static_cast<int>(i));
    }
    EXPECT_EQ(row.values[1].sum, nodes) << "each node once, and those it says";
    EXPECT_FALSE(rows_[row.tick].Intersects(row.nodes));
    rows_[row.tick].Add(row.nodes);
    if (late) return;
    TickMerger::Row whole = row;
    ended_.AddTo(whole, head_.series(), head_.Present());
    for (auto at = lost_.begin(); at != lost_.end();) {
      at = ended_.Has(at->first) ? std::next(at) : lost_.erase(at);
    }
  }

  void OnEnded(const FrameInfo& info, const Schema& schema, std::span<const Reduced> values,
               TickMerger::Source source) {
    const auto fate = ended_.Add(info, head_.ColumnsOf(schema), values);
    if (fate == EndedNodes::Fate::kOverlaps) return head_children_.Refuse(source);
    if (fate == EndedNodes::Fate::kAdded && info.lost) lost_[info.nodes.first()] = values[0].sum;
    head_children_.Forwarded({&source, 1}, 0);
  }

  std::mt19937 random_;
  const uint32_t fanout_;
  Nanos tick_ = 0;
  Loop loop_;
  Schema::Ptr schema_ =
      Schema::Make({Named("work_total", MetricType::kCounter), Named("who", MetricType::kGauge)});
  std::map<Nanos, NodeSet> rows_;
  std::map<uint32_t, double> lost_;
  uint64_t overlaps_ = 0;
  EndedNodes ended_;
  QueryFanout queries_{loop_};
  TickMerger head_{1024, [this](const TickMerger::Row& row, bool late) { OnRow(row, late); }};
  Children head_children_{head_,
                          queries_,
                          kSecond,
                          Children::Keep::kUntilArrived,
                          {.block = [](const BlockMessage&) {},
                           .moments = [](const collect::Moments&) {},
                           .ended = [this](const auto& info, const auto& schema, auto values,
                                           auto source) { OnEnded(info, *schema, values, source); },
                           .refused =
                               [this](auto fate, const auto& frame, auto source) {
                                 if (fate != TickMerger::Fate::kRepeated)
                                   overlaps_ += frame.nodes.size();
                                 head_children_.Forwarded({&source, 1}, 0);
                               }}};
  std::vector<std::unique_ptr<Connection>> graveyard_;
  std::vector<std::unique_ptr<Node>> nodes_;
};

// Stored blocks are told of with the pulse, in one packet; what a node waits for at once.
TEST(BlockAcks, WaitForThePulseUnlessTheNodeIsInAHurry) {
  Loop loop;
  QueryFanout queries(loop);
  TickMerger merger(16, [](const TickMerger::Row&, bool) {});
  const auto none = [](const auto&...) {};
  Children children(merger, queries, kSecond, Children::Keep::kUntilArrived,
                    {.block = none, .moments = none, .ended = none, .refused = none});
  const auto pipe = std::make_shared<Pipe>();
  PipeLink link(pipe);
  children.Add(link, 3);
  const std::string schema = std::string(1, static_cast<char>(Stream::kOwn)) +
                             PackSchema(*Schema::Make({Named("load", MetricType::kGauge)}));
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
    for (const auto& [type, payload] : pipe->messages) all.push_back(type);
    pipe->messages.clear();
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

TEST(Delivery, WithoutFaultsEveryTickIsCompleteAndNothingStaysUnderWay) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    Step step(2 + seed, 1 + seed % 4, seed);
    for (int tick = 0; tick < 10; ++tick) {
      step.Tick();
      for (unsigned n = step.Random(60); n > 0; --n) step.Deliver();
    }
    for (uint32_t i = 0; i < step.size(); ++i) step.End(i);
    step.Drain();
    step.Check(true);
    EXPECT_EQ(step.overlaps(), 0u);
  }
}

TEST(Delivery, WhateverLinksAndNodesFailEachOneThatLivesCountsOncePerTick) {
  uint64_t overlaps = 0;
  for (unsigned seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE(seed);
    Step step(3 + seed % 25, 1 + seed % 5, seed);
    for (int tick = 0; tick < 25; ++tick) {
      step.Tick();
      for (unsigned n = step.Random(80); n > 0; --n) step.Deliver();
      const uint32_t node = step.Any();
      switch (step.Random(8)) {
        case 0:
          if (step.running(node)) step.Kill(node);
          break;
        case 1:
          if (step.running(node)) step.End(node);
          break;
        case 2:
        case 3:
          if (step.running(node)) step.Cut(node);
          break;
        case 4:
          step.Expire(node);
          break;
        default:
          step.Pulse();
      }
    }
    for (uint32_t i = 0; i < step.size(); ++i) {
      if (step.running(i)) step.End(i);
    }
    step.Drain();
    step.Check(true);
    overlaps += step.overlaps();
    if (HasFailure()) return;
  }
  RecordProperty("overlaps", static_cast<int>(overlaps));
  EXPECT_LT(overlaps, 200u) << "of 50,000 samples";
}

TEST(Delivery, ALinkThatTakesNothingGetsLessDetailAndTheTotalsStayRight) {
  Step step(4, 2, 1);
  step.Stick(3, true);
  for (int tick = 0; tick < 200; ++tick) {
    step.Tick();
    while (step.Deliver()) {
    }
    step.Expire(0);
  }
  step.Stick(3, false);
  for (uint32_t i = 0; i < step.size(); ++i) step.End(i);
  step.Drain();
  step.Check(false);
}

}  // namespace
}  // namespace sonde::tree
