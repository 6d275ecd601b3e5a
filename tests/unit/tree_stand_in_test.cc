// What stands in for a node in rows that go without it: its counters never leave the totals.
#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "daemon/head/record/ended_nodes.h"
#include "daemon/loop.h"
#include "daemon/tree/children/children.h"
#include "daemon/tree/query_fanout.h"
#include "daemon/tree/tick_merger.h"
#include "daemon/tree/uplink.h"
#include "fake_clock.h"
#include "queue_link.h"
#include "tree_owners.h"

namespace sonde::tree::tree_stand_in_test {
namespace {

Series WorkTotal() {
  Series series;
  series.metric.name = "work_total";
  series.metric.type = MetricType::kCounter;
  return series;
}

// Two nodes and a head that merges as the head does. A node has counted as much as its newest tick
// says.
class StandIns : public ChildrenAlone, public testing::Test {
 protected:
  StandIns() {
    clock_.time = At(0);
    for (uint32_t i = 0; i < 2; ++i) Come(i);
  }

  void Come(uint32_t index) {
    nodes_.emplace_back();
    children_.Add(nodes_[index].to_head, index);
    nodes_[index].uplink.Announce(Stream::kOwn, schema_);
    nodes_[index].uplink.Use(&nodes_[index].from_node, false);
    Deliver(index);
  }
  void LoseLink(uint32_t index) { children_.Remove(nodes_[index].to_head); }

  static Nanos At(int tick) { return 1000 * kSecond + tick * kSecond; }

  void Sample(uint32_t index, int tick) {
    clock_.time = At(tick);
    FrameInfo info;
    info.tick = At(tick);
    info.stream = Stream::kOwn;
    info.nodes = NodeSet(index);
    std::vector<Reduced> values(1);
    values[0].Add(tick, {index, sonde::Owner::kNobody});
    nodes_[index].uplink.AddFrame(info, schema_, {values, {}});
    nodes_[index].uplink.Flush();
    Deliver(index);
  }

  // With much more than it had at its last tick.
  void End(uint32_t index, int tick) {
    FrameInfo info;
    info.tick = At(tick) + 1;
    info.stream = Stream::kEnded;
    info.nodes = NodeSet(index);
    std::vector<Reduced> values(1);
    values[0].Add(100, {index, sonde::Owner::kNobody});
    nodes_[index].uplink.AddFrame(info, schema_, {values, {}});
    nodes_[index].uplink.Flush();
    nodes_[index].uplink.End(Stream::kOwn);
    Deliver(index);
  }

  void OnEnded(const FrameInfo& info, const Schema::Ptr& schema, std::span<const Reduced> values,
               TickMerger::Source /*source*/) override {
    ended_.Add(info, head_.ColumnsOf(*schema), values);
    if (info.lost) handed_on_.push_back(info.tick);
  }

  TickMerger head_{16, [this](const TickMerger::Row& row, bool late) { OnRow(row, late); }};
  std::vector<double> counts_;  // of values, row by row
  std::vector<double> totals_;
  std::vector<Nanos> handed_on_;  // from when on it counts

 private:
  struct Node {
    Uplink uplink;
    QueueLink from_node;
    QueueLink to_head;
  };

  void Deliver(uint32_t index) {
    for (const auto& [type, payload] : std::exchange(nodes_[index].from_node.queue, {})) {
      ASSERT_TRUE(children_.OnMessage(nodes_[index].to_head, type, payload).ok());
    }
  }

  void OnRow(const TickMerger::Row& row, bool late) {
    ASSERT_FALSE(late);
    children_.HandOnLost(row.tick, row.nodes);
    children_.StandInForMissing(row.tick, row.nodes);
    TickMerger::Row whole = row;
    ended_.AddTo(whole, head_.series(), head_.Present());
    counts_.push_back(whole.values[0].count);
    totals_.push_back(whole.values[0].sum);
  }

  static Schema::Ptr Work() { return Schema::Make({WorkTotal()}); }

  FakeClock clock_;
  Loop loop_;
  QueryFanout queries_{loop_};
  EndedNodes ended_;
  const Schema::Ptr schema_ = Work();

 protected:
  Children children_{head_, queries_, {kSecond, 2 * kSecond}, Keep::kUntilSafe, *this, clock_};

 private:
  std::deque<Node> nodes_;
};

// The node takes no sample of tick 2, and none of tick 4 has come when the row is made.
TEST_F(StandIns, ComeEachTimeThatTheNodeIsMissing) {
  Sample(0, 1);
  Sample(1, 1);
  Sample(1, 2);
  Sample(0, 3);
  Sample(1, 3);
  Sample(1, 4);
  head_.EmitUpTo(At(4));
  EXPECT_EQ(counts_, (std::vector<double>{2, 2, 2, 2}));
  EXPECT_EQ(totals_, (std::vector<double>{2, 3, 6, 7}));
}

// Nobody else has a sample of the tick here: above there may be.
TEST_F(StandIns, ComeAlsoWhereNoRowTellsOfTheGap) {
  Sample(0, 1);
  Sample(0, 3);
  EXPECT_EQ(handed_on_, (std::vector<Nanos>{At(1) + 1}));
}

// As when a switch fails under which they all are.
TEST_F(StandIns, ComeForAllOfHundredsWhoseLinksBreakAtOnce) {
  constexpr uint32_t kNodes = 700;
  for (uint32_t i = 2; i < kNodes; ++i) Come(i);
  for (uint32_t i = 0; i < kNodes; ++i) Sample(i, 1);
  for (uint32_t i = 1; i < kNodes; ++i) LoseLink(i);
  Sample(0, 2);
  head_.EmitUpTo(At(2));
  EXPECT_EQ(handed_on_.size(), kNodes - 1);
  EXPECT_EQ(totals_, (std::vector<double>{kNodes, kNodes + 1}))
      << "nobody's counter left the total";
}

// No row of tick 2 is made here, which nobody here has taken: above there may be one.
TEST_F(StandIns, CountFromTheFirstTickWithoutTheNode) {
  Sample(0, 1);
  Sample(1, 1);
  Sample(1, 3);
  head_.EmitUpTo(At(3));
  EXPECT_EQ(handed_on_, (std::vector<Nanos>{At(1) + 1, At(1) + 1})) << "one of each";
}

// A row that waits for another node has what the node had counted before the tick, also if the node
// has been missing a second time meanwhile, and has ended.
TEST_F(StandIns, AreNotNewerThanTheRow) {
  Sample(0, 1);
  Sample(1, 1);
  for (const int tick : {3, 5}) Sample(0, tick);
  End(0, 5);
  Sample(1, 2);
  Sample(1, 3);
  Sample(1, 4);
  Sample(1, 5);
  Sample(1, 6);
  EXPECT_EQ(counts_, (std::vector<double>{2, 2, 2, 2, 2, 2}));
  EXPECT_EQ(totals_, (std::vector<double>{2, 1 + 2, 3 + 3, 3 + 4, 5 + 5, 100 + 6}));
}

// Whoever keeps the rows learns when other values stand in for a node that is still absent.
class RenewedStandIns : public testing::Test {
 protected:
  void Add(uint32_t node, Nanos tick, double counted, bool lost = true) {
    FrameInfo info;
    info.stream = Stream::kEnded;
    info.tick = tick;
    info.lost = lost;
    info.nodes = NodeSet(node);
    std::vector<Reduced> values(1);
    values[0].Add(counted, {node, sonde::Owner::kNobody});
    ended_.Add(info, columns_, values);
  }

  // Of these nodes; gives since when the values had counted that were replaced.
  std::vector<Nanos> Row(Nanos tick, std::initializer_list<uint32_t> nodes = {0}) {
    TickMerger::Row made;
    made.tick = tick;
    made.values.resize(1);
    for (const uint32_t node : nodes) {
      made.nodes.Add(NodeSet(node));
      made.values[0].Add(1, {node, sonde::Owner::kNobody});
    }
    ended_.AddTo(made, series_, present_);
    std::vector<Nanos> renewed;
    for (const auto& one : ended_.renewed()) renewed.push_back(one.when);
    return renewed;
  }

  using Renewed = std::vector<Nanos>;
  const std::vector<Series> series_{WorkTotal()};
  const std::vector<bool> present_ = {true};
  const std::vector<uint32_t> columns_ = {0};
  EndedNodes ended_;
};

TEST_F(RenewedStandIns, AreToldWithTheRowThatHasThem) {
  Add(1, 5, 0);
  EXPECT_EQ(Row(10), Renewed()) << "the first row has what there was";
  EXPECT_EQ(Row(11), Renewed());
  Add(1, 13, 14);
  EXPECT_EQ(Row(12), Renewed()) << "that counts later";
  EXPECT_EQ(Row(13), Renewed{5});
  EXPECT_EQ(Row(14), Renewed());
}

// What comes later may be of the same time, and have counted more; of an earlier one it has not.
TEST_F(RenewedStandIns, AreThoseOfTheSameTimeAndNoOlderOnes) {
  Add(1, 5, 0);
  EXPECT_EQ(Row(10), Renewed());
  Add(1, 5, 14);
  EXPECT_EQ(Row(11), Renewed{5});
  Add(1, 4, 13);
  EXPECT_EQ(Row(12), Renewed());
}

TEST_F(RenewedStandIns, AreToldWhenTheNodesOwnLastWordComes) {
  Add(1, 5, 0);
  Add(2, 7, 0);
  EXPECT_EQ(Row(10), Renewed());
  Add(1, 12, 14, /*lost=*/false);
  EXPECT_EQ(Row(11), Renewed());
  EXPECT_EQ(Row(12), Renewed{5});
  Add(2, 6, 14, /*lost=*/false);  // which counts from before on
  EXPECT_EQ(Row(13), Renewed{7});
  EXPECT_EQ(Row(14), Renewed());
}

TEST_F(RenewedStandIns, AreNoneWhereTheNodeIsBack) {
  Add(1, 5, 0);
  EXPECT_EQ(Row(10), Renewed());
  EXPECT_EQ(Row(11, {0, 1}), Renewed());
  Add(1, 12, 14);
  EXPECT_EQ(Row(12), Renewed()) << "nothing stood in for it in the row before";
}

}  // namespace
}  // namespace sonde::tree::tree_stand_in_test
