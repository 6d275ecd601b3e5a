// Whose samples are missing in rows: against a model that looks at every node for every row.
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <random>

#include "daemon/head/alarms/missing_nodes.h"

namespace sonde::head::head_missing_nodes_test {
namespace {

constexpr Nanos kStart = 1'000'000 * kSecond;

// Nodes that come, go and come back, and rows that lack some of those that are there.
class Model {
 public:
  explicit Model(uint64_t seed) : random_(seed) {}

  void Step() {
    now_ += static_cast<Nanos>(Below(1200)) * kMillisecond;
    const auto node = static_cast<uint32_t>(Below(12));
    if (Below(3) == 0) {
      missing_.OnGone(node);
      joined_.erase(node);
    } else {
      missing_.OnNode(node, now_);
      joined_[node] = now_;
    }
    ASSERT_EQ(missing_.present(), joined_.size());
  }
  void Row() {
    const Nanos tick = now_ / kSecond * kSecond;
    if (tick <= tick_) return;
    tick_ = tick;
    tree::NodeSet nodes;
    for (const auto& [node, joined] : joined_) {
      if (Below(4) != 0) nodes.Add(tree::NodeSet(node));
    }
    Compare(missing_.OfRow(tick, nodes), nodes, tick);
    if (!joined_.empty()) Compare(missing_.OfNoRow(now_), {}, now_);
  }
  int compared() const { return compared_; }

 private:
  uint64_t Below(uint64_t end) { return random_() % end; }

  void Compare(const Reduced& told, const tree::NodeSet& nodes, Nanos tick) {
    if (nodes.size() >= joined_.size()) {
      EXPECT_EQ(told.count, static_cast<double>(joined_.size()));
      EXPECT_EQ(told.sum, 0);
      EXPECT_EQ(told.max, 0);
      return;
    }
    Reduced expected;
    for (const auto& [node, joined] : joined_) {
      if (joined > tick - 2 * kSecond) continue;
      expected.Add(nodes.Has(node) ? 0 : 1, {node, Owner::kNobody});
    }
    EXPECT_EQ(told.count, expected.count);
    EXPECT_EQ(told.sum, expected.sum);
    EXPECT_EQ(told.sum_sq, expected.sum_sq);
    EXPECT_EQ(told.min, expected.min);
    EXPECT_EQ(told.max, expected.max);
    EXPECT_EQ(told.min_owner, expected.min_owner);
    EXPECT_EQ(told.max_owner, expected.max_owner);
    ++compared_;
  }

  std::mt19937_64 random_;
  MissingNodes missing_{kSecond};
  std::map<uint32_t, Nanos> joined_;
  Nanos now_ = kStart;
  Nanos tick_ = 0;
  int compared_ = 0;
};

TEST(MissingNodes, AreThoseThatAreThereAndNotInTheRow) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Model model(seed);
    for (int i = 0; i < 60; ++i) {
      model.Step();
      model.Row();
    }
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
    ASSERT_GT(model.compared(), 10);
  }
}

TEST(MissingNodes, OneThatHasOnlyJustComeIsNotMissed) {
  MissingNodes nodes(kSecond);
  nodes.OnNode(0, kStart);
  nodes.OnNode(1, kStart + 5 * kSecond);
  const tree::NodeSet first(0);
  EXPECT_EQ(nodes.OfRow(kStart + 6 * kSecond, first).max, 0);
  const Reduced later = nodes.OfRow(kStart + 7 * kSecond, first);
  EXPECT_EQ(later.max, 1);
  EXPECT_EQ(later.max_owner.node, 1u);
  EXPECT_EQ(later.count, 2);
}

}  // namespace
}  // namespace sonde::head::head_missing_nodes_test
