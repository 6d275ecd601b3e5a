#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <random>
#include <string>
#include <vector>

#include "daemon/head/registry/parents.h"
#include "daemon/tree/children/children.h"
#include "daemon/tree/query_fanout.h"
#include "daemon/tree/tick_merger.h"
#include "tree_owners.h"

namespace sonde::head::head_parents_test {
namespace {

using testing::IsEmpty;
using tree::kHeadIndex;
using tree::Type;

Config Fanout2() {
  Config config;
  config.fanout = 2;
  config.provider = "sockets";
  return config;
}

// Nodes that do as they are told, but when the test says so.
class Step final : private Parents::Owner {
 public:
  // `host`: of the head; where that is no address it has no links of its own.
  explicit Step(uint32_t nodes, std::string host = "127.0.0.1") {
    parents_.SetLocalHost(std::move(host));
    nodes_.resize(nodes);
    for (uint32_t i = 0; i < nodes; ++i) parents_.Add("");
  }

  bool gone(uint32_t node) const { return nodes_[node].gone; }
  bool connected(uint32_t node) const { return nodes_[node].connected; }
  uint32_t parent(uint32_t node) const { return nodes_[node].parent; }
  size_t size() const { return nodes_.size(); }

  void Ask(uint32_t node, uint32_t failed = kHeadIndex) {
    std::string payload;
    ByteWriter(payload).Varint(failed);
    parents_.OnWantParent(node, payload);
  }
  void AllAsk() {
    for (uint32_t i = 0; i < size(); ++i) Ask(i);
  }
  void Listens(uint32_t index) {
    parents_.OnListening(index, Encode(tree::Listening{"10.0.0." + std::to_string(index), ""}));
  }
  // A node takes the head's next message. False: there is none.
  bool TakeOne(uint32_t index) {
    Node& node = nodes_[index];
    if (node.messages.empty()) return false;
    const auto [type, payload] = node.messages.front();
    node.messages.pop_front();
    if (type == Type::kListen) {
      Listens(index);
    } else if (type == Type::kParent) {
      tree::ParentAddress told;
      EXPECT_TRUE(Decode(payload, told).ok());
      node.parent = told.index;
      if (told.index != kHeadIndex && gone(told.index)) LoseParent(index);
    }
    return true;
  }
  void Take(uint32_t index) {
    while (TakeOne(index)) {
    }
  }
  void AllTake() {
    for (bool more = true; more;) {
      more = false;
      for (uint32_t i = 0; i < size(); ++i) more = TakeOne(i) || more;
    }
  }
  // Its connection to the parent fails.
  void LoseParent(uint32_t index) {
    const uint32_t failed = std::exchange(nodes_[index].parent, kHeadIndex);
    if (connected(index) && failed != kHeadIndex) Ask(index, failed);
  }
  void Leave(uint32_t index) {
    nodes_[index].gone = true;
    nodes_[index].messages.clear();
    parents_.Remove(index);
    for (uint32_t i = 0; i < size(); ++i) {
      if (parent(i) == index && !gone(i)) LoseParent(i);
    }
  }
  // From the head: what was on its way is lost.
  void Disconnect(uint32_t index) {
    nodes_[index].connected = false;
    nodes_[index].messages.clear();
  }
  void Reconnect(uint32_t index) {
    nodes_[index].connected = true;
    parents_.OnBack(index, "", parent(index));
  }
  // Those whose data do not come to the head.
  std::vector<uint32_t> Lost() const {
    std::vector<uint32_t> lost;
    for (uint32_t i = 0; i < size(); ++i) {
      if (!gone(i) && !ReachesHead(i)) lost.push_back(i);
    }
    return lost;
  }

 private:
  struct Node {
    bool connected = true;
    bool gone = false;
    uint32_t parent = kHeadIndex;
    std::deque<std::pair<Type, std::string>> messages;
  };
  bool ReachesHead(uint32_t node) const {
    for (size_t steps = 0; node != kHeadIndex && steps < size(); ++steps) node = parent(node);
    return node == kHeadIndex;
  }
  bool SendTo(uint32_t node, Type type, std::string_view payload) override {
    if (!connected(node) || gone(node)) return false;
    nodes_[node].messages.emplace_back(type, payload);
    return true;
  }
  void AddNodeNote(uint32_t /*node*/, std::string_view /*text*/) override {}

  std::vector<Node> nodes_;
  Loop loop_;
  tree::QueryFanout queries_{loop_};
  tree::TickMerger merger_{60, [](const tree::TickMerger::Row&, bool) {}};
  tree::ChildrenAlone alone_;
  tree::Children children_{merger_, queries_, {kSecond, kSecond}, tree::Keep::kUntilSafe, alone_};
  tree::ChildLinks links_{loop_, {}, kSecond, children_, [] {}};
  Parents parents_{loop_, Fanout2(), 0, links_, *this};
};

TEST(Parents, NodesGetTheParentsOfTheirPlaces) {
  Step step(6);
  step.AllAsk();
  step.AllTake();
  const std::vector<uint32_t> places = {kHeadIndex, kHeadIndex, 0, 0, 1, 1};
  for (uint32_t i = 0; i < 6; ++i) EXPECT_EQ(step.parent(i), places[i]) << i;
}

// 3 does not say where its child 8 is to connect; meanwhile 0 leaves, 8 takes its place, and 3 is
// to be its child.
TEST(Parents, AnAnswerThatComesLateMakesNoCircle) {
  Step step(9);
  for (uint32_t i = 0; i < 8; ++i) step.Ask(i);
  step.AllTake();
  step.Ask(8);
  ASSERT_EQ(step.parent(3), 0u);
  step.Leave(0);
  step.Take(8);
  step.AllTake();
  EXPECT_EQ(step.parent(8), kHeadIndex);
  EXPECT_EQ(step.parent(3), 8u);
  EXPECT_THAT(step.Lost(), IsEmpty());
}

TEST(Parents, WhoeverComesBackAndMissedItsNewParentIsToldAgain) {
  Step step(9);
  step.AllAsk();
  step.AllTake();
  ASSERT_EQ(step.parent(8), 3u);
  step.Listens(8);  // it had children before
  step.Leave(0);    // 8 takes its place and is told, and so is 3, which shall send to 8
  step.Take(3);
  ASSERT_EQ(step.parent(3), 8u);
  step.Disconnect(8);  // before it took that
  step.Reconnect(8);
  step.AllTake();
  EXPECT_THAT(step.Lost(), IsEmpty());
}

TEST(Parents, WhateverIsLateOrLostNobodySendsInACircle) {
  for (uint32_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const auto below = [&](size_t n) { return static_cast<uint32_t>(random() % n); };
    Step step(10, seed % 2 == 0 ? "127.0.0.1" : "");
    step.AllAsk();
    for (int i = 0; i < 200; ++i) {
      const uint32_t node = below(step.size());
      if (step.gone(node)) continue;
      const uint32_t what = below(12);
      if (what == 0) step.Disconnect(node);
      if (what == 1 && !step.connected(node)) step.Reconnect(node);
      if (what == 2) step.LoseParent(node);
      if (what == 3 && below(4) == 0) step.Leave(node);
      if (what > 3) step.TakeOne(node);
    }
    for (uint32_t i = 0; i < step.size(); ++i) {
      if (!step.connected(i) && !step.gone(i)) step.Reconnect(i);
    }
    step.AllTake();
    ASSERT_THAT(step.Lost(), IsEmpty());
  }
}

}  // namespace
}  // namespace sonde::head::head_parents_test
