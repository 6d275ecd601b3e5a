#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "daemon/head/registry/homecoming.h"
#include "daemon/tree/placement.h"

namespace sonde::tree::tree_placement_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// The height of the lowest tree with so many nodes.
uint32_t LowestHeight(uint64_t nodes, uint64_t fanout) {
  uint32_t height = 1;
  uint64_t held = fanout;
  for (uint64_t level = fanout; held < nodes; ++height) held += level *= fanout;
  return height;
}

// What holds at any time.
void CheckShape(const Placement& tree, uint32_t fanout) {
  std::map<uint32_t, std::vector<uint32_t>> children;
  for (uint32_t i = 0; i < tree.size(); ++i) {
    if (!tree.Present(i)) {
      EXPECT_THAT(tree.Children(i), IsEmpty()) << "node " << i << " is gone";
      continue;
    }
    children[tree.Parent(i)].push_back(i);
    uint32_t depth = 0;
    uint32_t at = i;
    for (; at != kHeadIndex && depth <= tree.size(); at = tree.Parent(at), ++depth) {
      ASSERT_TRUE(tree.Present(at)) << "node " << at << ", above " << i << ", is gone";
    }
    ASSERT_EQ(at, kHeadIndex) << "node " << i << " does not reach the head";
    ASSERT_EQ(tree.Depth(i), depth);
  }
  for (auto& [parent, expected] : children) {
    EXPECT_LE(expected.size(), fanout) << "children of " << parent;
    const auto span = tree.Children(parent);
    std::vector<uint32_t> told(span.begin(), span.end());
    std::sort(told.begin(), told.end());
    EXPECT_EQ(told, expected) << "children of " << parent;
  }
}

TEST(Switches, AreTakenFromWhatSlurmTells) {
  EXPECT_EQ(SwitchesOf("s0.s4.s8.tux1", "switch.switch.switch.node"), "s0.s4.s8");
  EXPECT_EQ(SwitchesOf("s8.tux1.example.org", "switch.node"), "s8");
  EXPECT_EQ(SwitchesOf("b3.tux1", "block.node"), "b3");
  EXPECT_EQ(SwitchesOf("tux1", "node"), "");
  EXPECT_EQ(SwitchesOf("", ""), "");
  EXPECT_EQ(SwitchesOf("s0", ""), "");
  EXPECT_EQ(SwitchesOf("s0", "switch.switch.node"), "s0");
  EXPECT_EQ(SwitchesOf("..tux1", "switch.switch.node"), "");
}

TEST(Switches, OfManyTheLowestAreKept) {
  std::string address, pattern;
  for (int i = 0; i < 20; ++i) {
    address += std::to_string(i) + ".";
    pattern += "switch.";
  }
  EXPECT_EQ(SwitchesOf(address + "n", pattern + "node"), "12.13.14.15.16.17.18.19");
  const std::string longest(kMaxTopology + 1, 's');
  EXPECT_EQ(SwitchesOf("a." + longest + ".b.n", "switch.switch.switch.node"), "b");
}

TEST(Placement, FillsTheTreeByIndexWhereNoSwitchesAreKnown) {
  for (const uint32_t fanout : {2u, 3u, 16u}) {
    Placement tree(fanout, 1000);
    for (uint32_t i = 0; i < 1000; ++i) {
      ASSERT_EQ(tree.Add(""), i);
      EXPECT_EQ(tree.Parent(i), i < fanout ? kHeadIndex : i / fanout - 1);
    }
    CheckShape(tree, fanout);
  }
}

TEST(Placement, NodesUnderOneSwitchHangUnderOneOfThem) {
  // Four switches of 16 nodes, which come in any order.
  std::vector<uint32_t> order(64);
  for (uint32_t i = 0; i < 64; ++i) order[i] = i;
  std::mt19937 random(7);
  std::shuffle(order.begin(), order.end(), random);
  Placement tree(16, 64);
  std::vector<uint32_t> at_switch;
  for (const uint32_t node : order) {
    tree.Add("top.leaf" + std::to_string(node % 4));
    at_switch.push_back(node % 4);
  }
  CheckShape(tree, 16);
  EXPECT_EQ(tree.Children(kHeadIndex).size(), 4u);
  for (uint32_t i = 0; i < 64; ++i) {
    if (tree.Parent(i) == kHeadIndex) continue;
    EXPECT_EQ(at_switch[tree.Parent(i)], at_switch[i]) << "node " << i;
  }
}

TEST(Placement, OneSwitchMakesTheTreeNoHigher) {
  Placement tree(16, 100);
  for (int i = 0; i < 100; ++i) tree.Add("only");
  CheckShape(tree, 16);
  for (uint32_t i = 0; i < 100; ++i) EXPECT_LE(tree.Depth(i), 2u);
  // Nor does one for a step whose nodes the head can have all.
  Placement flat(16, 12);
  for (int i = 0; i < 12; ++i) flat.Add("only");
  EXPECT_EQ(flat.Children(kHeadIndex).size(), 12u);
}

TEST(Placement, ManySwitchesCrossFewLinks) {
  // 64 switches of 16 nodes; the first node of each of the first 16 is the head's child.
  Placement tree(16, 1024);
  for (uint32_t i = 0; i < 1024; ++i) tree.Add("s" + std::to_string(i * 7919 % 1024 / 16));
  CheckShape(tree, 16);
  int crossing = 0;
  for (uint32_t i = 0; i < 1024; ++i) {
    const auto where = [](uint32_t node) { return node * 7919 % 1024 / 16; };
    const uint32_t parent = tree.Parent(i);
    crossing += parent == kHeadIndex || where(parent) != where(i) ? 1 : 0;
  }
  // By index it were nearly all; 64 at the least.
  EXPECT_LE(crossing, 2 * 64);
}

TEST(Placement, ANodeThatLeavesIsReplacedByOneOfItsChildren) {
  Placement tree(2, 6);
  for (int i = 0; i < 6; ++i) tree.Add("");  // 0: 2, 3; 1: 4, 5
  EXPECT_THAT(tree.Remove(0), ElementsAre(3, 2));
  EXPECT_EQ(tree.Parent(3), kHeadIndex);
  EXPECT_EQ(tree.Parent(2), 3u);
  EXPECT_EQ(tree.Parent(0), kHeadIndex) << "it delivers where it did";
  EXPECT_THAT(tree.Remove(0), IsEmpty());
  EXPECT_THAT(tree.Remove(2), IsEmpty());
  CheckShape(tree, 2);
  EXPECT_EQ(tree.present(), 4u);
  EXPECT_EQ(tree.Add(""), 6u);
  EXPECT_EQ(tree.Parent(6), 3u) << "the free place nearest to the head";
}

TEST(Placement, NoMoreMoveThanHaveTo) {
  Placement tree(3, 30);
  for (int i = 0; i < 16; ++i) tree.Add("");  // 0: 3, 4, 5; 3: 12, 13, 14; 4: 15
  EXPECT_THAT(tree.Remove(0), ElementsAre(5, 3, 4)) << "its childless child takes the others";
  CheckShape(tree, 3);
}

TEST(Placement, OneThatIsBackGetsAPlaceAsANewOneDoes) {
  Placement tree(2, 14);
  for (int i = 0; i < 14; ++i) tree.Add("");
  tree.Remove(0);
  tree.AddAgain(0, "");
  CheckShape(tree, 2);
  EXPECT_TRUE(tree.Present(0));
  EXPECT_EQ(tree.present(), 14u);
  EXPECT_THAT(tree.Children(0), IsEmpty()) << "its former ones stay where they are";
  const uint32_t parent = tree.Parent(5);
  tree.AddAgain(5, "");
  EXPECT_EQ(tree.Parent(5), parent) << "it was there";
}

TEST(Placement, WhereAllChildrenHaveChildrenALeafComesFromBelow) {
  Placement tree(2, 14);
  for (int i = 0; i < 14; ++i) tree.Add("");  // full to a depth of three
  const std::vector<uint32_t> moved = tree.Remove(0);
  ASSERT_EQ(moved.size(), 3u);
  EXPECT_EQ(tree.Parent(moved[0]), kHeadIndex);
  EXPECT_EQ(tree.Parent(2), moved[0]);
  EXPECT_EQ(tree.Parent(3), moved[0]);
  CheckShape(tree, 2);
  for (uint32_t i = 1; i < 14; ++i) EXPECT_LE(tree.Depth(i), 3u);
}

TEST(Placement, ANodeThatCannotReachItsParentGetsAnother) {
  Placement tree(2, 14);
  for (int i = 0; i < 13; ++i) tree.Add("");
  ASSERT_EQ(tree.Parent(12), 5u);
  const uint32_t other = tree.Move(12, {});
  EXPECT_NE(other, 5u);
  EXPECT_EQ(tree.Parent(12), other);
  CheckShape(tree, 2);
  // An inner node takes what is below it along, and never hangs under that.
  const std::vector<uint32_t> avoid = {1};
  const uint32_t moved = tree.Move(2, avoid);
  EXPECT_NE(moved, 0u);
  EXPECT_NE(moved, 1u);
  CheckShape(tree, 2);
  // Nobody is left.
  Placement chain(2, 3);
  for (int i = 0; i < 3; ++i) chain.Add("");
  EXPECT_EQ(chain.Move(2, std::vector<uint32_t>{1, kHeadIndex}), 0u);
  EXPECT_EQ(chain.Parent(2), 0u);
}

void RemoveAndCheck(Placement& tree, std::vector<uint32_t>& there, size_t victim) {
  const uint32_t index = there[victim];
  there.erase(there.begin() + static_cast<long>(victim));
  std::map<uint32_t, std::pair<uint32_t, uint32_t>> before;
  for (const uint32_t node : there) before[node] = {tree.Parent(node), tree.Depth(node)};
  const std::vector<uint32_t> moved = tree.Remove(index);
  for (auto at = moved.begin(); at != moved.end(); ++at) {
    EXPECT_EQ(std::count(moved.begin(), moved.end(), *at), 1);
    EXPECT_EQ(std::count(at, moved.end(), tree.Parent(*at)), 0) << "before its parent";
  }
  for (const uint32_t node : there) {
    EXPECT_LE(tree.Depth(node), before[node].second) << "node " << node;
    const bool told = std::count(moved.begin(), moved.end(), node) != 0;
    EXPECT_EQ(tree.Parent(node) != before[node].first, told) << "node " << node;
  }
}

// Nodes come, leave and move in any order, with and without switches.
TEST(Placement, KeepsItsPromisesWhateverHappens) {
  for (uint32_t seed = 1; seed <= 40; ++seed) {
    std::mt19937 random(seed);
    const uint32_t fanout = 2 + random() % 6;
    const uint32_t pods = 1 + random() % 4;
    const uint32_t leaves = 1 + random() % 8;
    const uint32_t expected = random() % 2 == 0 ? 0 : 150;
    Placement tree(fanout, expected);
    SCOPED_TRACE(testing::Message() << "seed " << seed << ", fanout " << fanout);
    std::vector<uint32_t> there;
    for (int step = 0; step < 300 && !testing::Test::HasFailure(); ++step) {
      const uint32_t what = there.empty() ? 0 : random() % 10;
      if (what < 6) {
        const std::string pod = "p" + std::to_string(random() % pods);
        const uint32_t index = tree.Add(
            random() % 4 == 0 ? "" : pod + "." + pod + "l" + std::to_string(random() % leaves));
        there.push_back(index);
        ASSERT_TRUE(tree.Parent(index) == kHeadIndex || tree.Parent(index) < index);
        const uint64_t nodes = std::max<uint64_t>(there.size(), expected);
        ASSERT_LE(tree.Depth(index), LowestHeight(nodes, fanout) + 1);
      } else if (what < 9) {
        RemoveAndCheck(tree, there, random() % there.size());
      } else {
        const uint32_t index = there[random() % there.size()];
        const uint32_t parent = tree.Move(index, {});
        EXPECT_EQ(tree.Parent(index), parent);
        if (random() % 2 == 0 || tree.away().empty()) continue;
        const uint32_t away = *tree.away().begin();
        const uint32_t home = tree.Home(away);
        if (tree.Return(away)) {
          EXPECT_EQ(tree.Parent(away), home);
        }
      }
      CheckShape(tree, fanout);
    }
  }
}

// --- Going home ---

class GoingHome : public testing::Test {
 protected:
  GoingHome() {
    for (int i = 0; i < 1024; ++i) tree_.Add("");
    for (uint32_t i = 0; i < 1024; ++i) before_.push_back(tree_.Parent(i));
  }
  // Its children find nothing of it any more.
  void Fail(uint32_t parent) {
    const auto children = tree_.Children(parent);
    for (const uint32_t child : std::vector<uint32_t>(children.begin(), children.end())) {
      tree_.Move(child, {});
      homecoming_.OnFailed(parent, now_);
    }
  }
  // A second later; how many went home.
  size_t Second() {
    now_ += kSecond;
    const std::vector<uint32_t> due = homecoming_.Due(now_);
    for (const uint32_t node : due) EXPECT_EQ(tree_.Parent(node), before_[node]);
    return due.size();
  }
  // Seconds until the first goes home.
  int Wait() {
    for (int seconds = 1; seconds < 1000; ++seconds) {
      if (Second() > 0) return seconds;
    }
    return 1000;
  }

  Placement tree_{16, 1024};
  Homecoming homecoming_{tree_};
  std::vector<uint32_t> before_;
  Nanos now_ = 100 * kSecond;
};

TEST_F(GoingHome, AfterAnOverloadTheTreeHasItsShapeAgainLittleByLittle) {
  for (uint32_t parent = 0; parent < 40; ++parent) Fail(parent);
  EXPECT_GT(tree_.away().size(), 500u);
  CheckShape(tree_, 16);
  for (int second = 1; second <= 5; ++second) EXPECT_EQ(Second(), 0u);
  for (int second = 0; !tree_.away().empty() && second < 200; ++second) {
    EXPECT_LE(Second(), 8u);
  }
  for (uint32_t i = 0; i < 1024; ++i) EXPECT_EQ(tree_.Parent(i), before_[i]);
  CheckShape(tree_, 16);
}

TEST_F(GoingHome, WhoseParentFailsAgainWaitsTwiceAsLong) {
  Fail(3);
  EXPECT_EQ(Wait(), 6);
  Fail(3);
  EXPECT_EQ(Wait(), 11);
  Fail(3);
  EXPECT_EQ(Wait(), 21);
  for (int i = 0; i < 6; ++i) {
    Fail(3);
    Wait();
  }
  Fail(3);
  EXPECT_EQ(Wait(), 301);
  while (!tree_.away().empty()) Second();
  for (int second = 0; second < 400; ++second) Second();
  Fail(3);
  EXPECT_EQ(Wait(), 6) << "that is forgotten";
}

// A parent that is gone for good: its children belong where they are then.
TEST_F(GoingHome, NobodyWaitsForAParentThatIsGone) {
  Fail(3);
  EXPECT_EQ(tree_.away().size(), 16u);
  tree_.Remove(3);
  EXPECT_TRUE(tree_.away().empty());
  EXPECT_EQ(Wait(), 1000);
  CheckShape(tree_, 16);
}

// Others do not take the places of those that are away.
TEST_F(GoingHome, PlacesAreKept) {
  Fail(3);
  for (int i = 0; i < 100; ++i) EXPECT_NE(tree_.Parent(tree_.Add("")), 3u);
}

TEST(Placement, IsQuickForManyNodes) {
  constexpr uint32_t kNodes = 100'000;
  Placement tree(16, kNodes);
  for (uint32_t i = 0; i < kNodes; ++i) {
    tree.Add("top.pod" + std::to_string(i % 40) + ".leaf" + std::to_string(i % 2000));
  }
  for (uint32_t i = 0; i < 50; ++i) tree.Remove(i);
  CheckShape(tree, 16);
}

}  // namespace
}  // namespace sonde::tree::tree_placement_test
