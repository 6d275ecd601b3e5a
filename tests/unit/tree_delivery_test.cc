// Frames on their way through trees whose links and nodes fail: every node counts once.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <memory>
#include <random>
#include <set>

#include "core/bytes.h"
#include "daemon/head/record/ended_nodes.h"
#include "daemon/loop.h"
#include "daemon/tree/children/children.h"
#include "daemon/tree/children/relay.h"
#include "daemon/tree/query_fanout.h"
#include "daemon/tree/tick_merger.h"
#include "fake_clock.h"
#include "tree_owners.h"

namespace sonde::tree::tree_delivery_test {
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
  Connection(uint32_t from, uint32_t to) : child(from), parent(to) {}
  uint32_t child;
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
class Step final : private ChildrenAlone {
 public:
  // Ticks of the past go on as they come; those of the future wait for all who are expected to have
  // them, at the head of odd seeds also for those who are between two links.
  enum class Ticks { kGoOn, kWait };

  Step(uint32_t nodes, uint32_t fanout, unsigned seed, Ticks ticks = Ticks::kGoOn)
      : random_(seed),
        fanout_(fanout),
        hand_over_((seed % 2 == 0 ? 1 : 7200) * kSecond),
        tick_(ticks == Ticks::kGoOn ? 0 : (Clock::System().Now() / kSecond + 3600) * kSecond) {
    clock_.time = Clock::System().Now();
    for (uint32_t i = 0; i < nodes; ++i) {
      nodes_.push_back(std::make_unique<Node>(loop_, clock_));
      nodes_[i]->relay.SetNode(i);
      Connect(i, ParentOf(i));
    }
  }

  // Every node that is there takes a sample: its counter, and a gauge that says who it is.
  void Tick() {
    tick_ += kSecond;
    if (tick_ > clock_.time) clock_.time = tick_ - 3 * kSecond;
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

  // It is told to send to the head, or to its place in the tree again: nothing is lost, and what it
  // says over the one connection arrives before or after what it says over the other.
  void Move(uint32_t index) {
    Node& node = *nodes_[index];
    if (node.link == nullptr) return;
    const uint32_t parent = node.link->parent == kHead ? Living(index) : kHead;
    left_.push_back(std::move(node.link));
    Attach(index, parent, true);
  }

  // Killed: its links end, its children go elsewhere.
  void Kill(uint32_t index) {
    Node& node = *nodes_[index];
    node.running = false;
    node.killed = true;
    Unlink(index);
    DropLeft([&](const Connection& c) { return c.child == index || c.parent == index; });
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
    std::vector<std::pair<Connection*, bool>> ready;
    const auto look = [&](Connection& connection) {
      if (!connection.up->messages.empty()) ready.emplace_back(&connection, true);
      if (!connection.down->messages.empty()) ready.emplace_back(&connection, false);
    };
    for (const auto& node : nodes_) {
      if (node->link != nullptr) look(*node->link);
    }
    for (const auto& connection : left_) look(*connection);
    if (ready.empty()) return false;
    const auto [connection, up] = ready[random_() % ready.size()];
    Connection& link = *connection;
    auto& pipe = up ? link.up : link.down;
    const auto [type, payload] = std::move(pipe->messages.front());
    pipe->messages.pop_front();
    if (!up) {
      OnWord(link.child, type, payload);
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
  void ExpireAtHead() { head_.EmitUpTo(tick_); }
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
    for (int quiet = 0, rounds = 0; quiet < 3 && rounds < 100; ++quiet, ++rounds) {
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
      EXPECT_LE(known.counted, nodes_[node]->counted) << node;
      if (!nodes_[node]->ended) total += known.counted;
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
  // Of the counter, row by row.
  const std::vector<double>& sums() const { return sums_; }
  double counted() const {
    double sum = 0;
    for (const auto& node : nodes_) sum += node->counted;
    return sum;
  }

  bool running(uint32_t index) const { return nodes_[index]->running; }
  uint32_t size() const { return static_cast<uint32_t>(nodes_.size()); }
  uint32_t Any() { return static_cast<uint32_t>(random_() % nodes_.size()); }
  unsigned Random(unsigned n) { return static_cast<unsigned>(random_() % n); }

 private:
  struct Node {
    Node(Loop& loop, const Clock& clock)
        : queries(loop), relay(loop, queries, kSecond, clock, owner) {}
    bool here() const { return !killed; }

    QueryFanout queries;
    RelayAlone owner;
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
    const sonde::Owner owner{index, sonde::Owner::kNobody};
    std::vector<Reduced> values(2);
    values[0].Add(nodes_[index]->counted, owner);
    values[1].Add(std::ldexp(1, static_cast<int>(index)), owner);
    return values;
  }

  void Unlink(uint32_t index) {
    if (nodes_[index]->link != nullptr) Bury(std::move(nodes_[index]->link));
  }

  void Bury(std::unique_ptr<Connection> old) {
    nodes_[old->child]->relay.uplink().Forget(&old->child_end);
    if (old->parent == kHead) {
      head_children_.Remove(old->parent_end);
    } else if (nodes_[old->parent]->here()) {
      nodes_[old->parent]->relay.children().Remove(old->parent_end);
      nodes_[old->parent]->relay.OnChildrenChanged();
    }
    graveyard_.push_back(std::move(old));  // the uplink holds a pointer until it has another
  }

  template <typename F>
  void DropLeft(F which) {
    for (auto& connection : std::exchange(left_, {})) {
      if (which(*connection)) {
        Bury(std::move(connection));
      } else {
        left_.push_back(std::move(connection));
      }
    }
  }

  void Connect(uint32_t index, uint32_t parent) {
    Unlink(index);
    Attach(index, parent, false);
  }

  void Attach(uint32_t index, uint32_t parent, bool tell_former) {
    Node& node = *nodes_[index];
    node.link = std::make_unique<Connection>(index, parent);
    Children& children = parent == kHead ? head_children_ : nodes_[parent]->relay.children();
    children.Add(node.link->parent_end, index);
    node.relay.uplink().Use(&node.link->child_end, tell_former);
  }

  void OnWord(uint32_t index, Type type, const std::string& payload) {
    ByteReader r(payload);
    const uint64_t number = r.Varint();
    const uint64_t safe = r.left() > 0 ? r.Varint() : number;
    EXPECT_TRUE(r.done());
    if (type == Type::kAck) nodes_[index]->relay.OnAck(number, safe);
    if (type != Type::kRefused) return;
    for (Link* link : nodes_[index]->relay.OnRefused(number)) {
      for (uint32_t i = 0; i < nodes_.size(); ++i) {
        if (nodes_[i]->link != nullptr && &nodes_[i]->link->parent_end == link) Connect(i, kHead);
      }
    }
  }

  void OnRow(const TickMerger::Row& row, bool late) {
    head_children_.HandOnLost(row.tick, row.nodes);
    if (!late) head_children_.StandInForMissing(row.tick, row.nodes);
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
    sums_.push_back(whole.values[0].sum);
    for (auto at = lost_.begin(); at != lost_.end();) {
      at = ended_.Has(at->first) ? std::next(at) : lost_.erase(at);
    }
  }

  void OnEnded(const FrameInfo& info, const Schema::Ptr& schema, std::span<const Reduced> values,
               TickMerger::Source source) override {
    const auto fate = ended_.Add(info, head_.ColumnsOf(*schema), values);
    if (fate == EndedNodes::Fate::kOverlaps) return head_children_.Refuse(source);
    if (fate == EndedNodes::Fate::kAdded && info.lost) {
      Known& known = lost_[info.nodes.first()];
      if (info.tick >= known.when) known = {info.tick, values[0].sum};
    }
    head_children_.Forwarded({&source, 1}, 0);
  }

  void OnRefused(TickMerger::Fate fate, const Frame& frame, TickMerger::Source source) override {
    if (fate != TickMerger::Fate::kRepeated) overlaps_ += frame.nodes.size();
    head_children_.Forwarded({&source, 1}, 0);
  }

  std::mt19937 random_;
  const uint32_t fanout_;
  const Nanos hand_over_;
  Nanos tick_;
  FakeClock clock_;
  Loop loop_;
  Schema::Ptr schema_ =
      Schema::Make({Named("work_total", MetricType::kCounter), Named("who", MetricType::kGauge)});
  std::map<Nanos, NodeSet> rows_;
  struct Known {
    Nanos when = 0;
    double counted = 0;
  };
  std::map<uint32_t, Known> lost_;  // newest
  std::vector<double> sums_;
  uint64_t overlaps_ = 0;
  EndedNodes ended_;
  QueryFanout queries_{loop_};
  TickMerger head_{1024, [this](const TickMerger::Row& row, bool late) { OnRow(row, late); }};
  Children head_children_{head_, queries_, {kSecond, hand_over_}, Keep::kUntilSafe, *this, clock_};
  std::vector<std::unique_ptr<Connection>>
      left_;  // which nodes have left for others, by their word
  std::vector<std::unique_ptr<Connection>> graveyard_;
  std::vector<std::unique_ptr<Node>> nodes_;
};

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

// Nodes end one after the other, those with nobody below first, and rows go without those that are
// slow: over links that keep what is sent no row has less than the one before.
TEST(Delivery, NoRowHasCountedLessThanTheOneBefore) {
  for (unsigned seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(seed);
    // Two levels at most: whoever is missing has a parent that knows what it had.
    const bool flat = seed % 2 == 0;
    const uint32_t nodes = 2 + seed % (flat ? 9 : 5);
    const auto ticks = seed % 3 == 0 ? Step::Ticks::kGoOn : Step::Ticks::kWait;
    Step step(nodes, flat ? nodes : 2, seed, ticks);
    for (int tick = 0; tick < 20; ++tick) {
      step.Tick();
      for (unsigned n = step.Random(80); n > 0; --n) step.Deliver();
      const uint32_t node = step.Any();
      const unsigned what = step.Random(4);
      const bool leaf = flat || 2 * (node + 1) >= nodes;
      if (what == 0 && step.running(node) && leaf) step.End(node);
      if (what == 1) step.Expire(node);
      if (what == 2 && flat) step.ExpireAtHead();
      if (what == 3) step.Pulse();
    }
    for (uint32_t i = step.size(); i-- > 0;) {
      while (step.Deliver()) {
      }
      if (step.running(i)) step.End(i);
    }
    step.Drain();
    ASSERT_FALSE(step.sums().empty());
    EXPECT_TRUE(std::is_sorted(step.sums().begin(), step.sums().end()))
        << testing::PrintToString(step.sums());
    EXPECT_LE(step.sums().back(), step.counted());
    if (HasFailure()) return;
  }
}

// Ticks, and after each something that happens to a node.
void RunThroughFaults(Step& step) {
  for (int tick = 0; tick < 25; ++tick) {
    step.Tick();
    for (unsigned n = step.Random(80); n > 0; --n) step.Deliver();
    const uint32_t node = step.Any();
    switch (step.Random(10)) {
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
      case 5:
        if (step.running(node)) step.Move(node);
        break;
      case 6:
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
}

TEST(Delivery, WhateverLinksAndNodesFailEachOneThatLivesCountsOncePerTick) {
  uint64_t overlaps = 0;
  for (unsigned seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE(seed);
    Step step(3 + seed % 25, 1 + seed % 5, seed);
    RunThroughFaults(step);
    step.Check(true);
    overlaps += step.overlaps();
    if (HasFailure()) return;
  }
  RecordProperty("overlaps", static_cast<int>(overlaps));
  EXPECT_LT(overlaps, 200u) << "of 50,000 samples";
}

// Nobody waits in vain for word of frames, whatever ticks they are in, whichever way they took and
// in whatever order nodes end. Check asks every node that lived to its end.
TEST(Delivery, HoweverTicksWaitEveryNodeIsToldThatAllHasArrived) {
  for (unsigned seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE(seed);
    Step step(2 + seed % 25, 1 + seed % 5, seed, Step::Ticks::kWait);
    RunThroughFaults(step);
    step.Check(true);
    if (HasFailure()) return;
  }
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
}  // namespace sonde::tree::tree_delivery_test
