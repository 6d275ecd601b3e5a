// What passes through an inner node: what whoever is above waits for, and hears of who is missing.
#include <gtest/gtest.h>

#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "daemon/loop.h"
#include "daemon/tree/children/children.h"
#include "daemon/tree/children/relay.h"
#include "daemon/tree/query_fanout.h"
#include "daemon/tree/tick_merger.h"
#include "fake_clock.h"
#include "queue_link.h"
#include "tree_owners.h"

namespace sonde::tree::tree_relay_test {
namespace {

constexpr Nanos kPeriod = 500 * kMillisecond;

// The head, a node below it, and a node below that.
class RelayTest : public ChildrenAlone, public testing::Test {
 protected:
  RelayTest() {
    clock_.time = At(-2);
    at_head_.Add(to_parent_, 0);
    parent_.children().Add(to_child_, 1);
    for (const auto& [relay, index, link] :
         {std::tuple(&parent_, 0u, &from_parent_), {&child_, 1u, &from_child_}}) {
      relay->SetNode(index);
      relay->Use(link, false);
      relay->Announce(schema_);
    }
    Deliver();
  }

  static Nanos At(int tick) { return 1'700'000'000 * kSecond + tick * kPeriod; }

  void Sample(Relay& relay, uint32_t index, int tick = 0) {
    clock_.time = At(tick);
    std::vector<Reduced> values(1);
    values[0].Add(1, {index, sonde::Owner::kNobody});
    relay.SendOwn(clock_.time, schema_, {values, {}});
    relay.uplink().Flush();
  }

  // At the head.
  void OnEnded(const FrameInfo& info, const Schema::Ptr& /*schema*/,
               std::span<const Reduced> /*values*/, TickMerger::Source /*source*/) override {
    if (info.lost) handed_on_.push_back(info.tick);
  }

  static Series Work() {
    Series series;
    series.metric.name = "work_total";
    series.metric.type = MetricType::kCounter;
    return series;
  }

  // All that was sent arrives, in the order in which children come before parents.
  void Deliver() {
    for (const auto& [type, payload] : std::exchange(from_child_.queue, {})) {
      ASSERT_TRUE(parent_.children().OnMessage(to_child_, type, payload).ok());
      parent_.OnChildrenChanged();
    }
    loop_.Post([this] { loop_.Stop(); });
    loop_.Run();
    for (const auto& [type, payload] : std::exchange(from_parent_.queue, {})) {
      ASSERT_TRUE(at_head_.OnMessage(to_parent_, type, payload).ok());
    }
  }

  FakeClock clock_;
  Loop loop_;
  QueryFanout queries_{loop_};
  std::vector<NodeSet> rows_;  // those that the head has, by their nodes
  TickMerger head_{16, [this](const TickMerger::Row& row, bool) { rows_.push_back(row.nodes); }};
  std::vector<Nanos> handed_on_;  // last values of who is missing: from when on they count
  Children at_head_{head_, queries_, {kPeriod, 2 * kPeriod}, Keep::kUntilArrived, *this, clock_};
  RelayAlone owner_;
  QueueLink from_child_;
  QueueLink to_child_;
  QueueLink from_parent_;
  QueueLink to_parent_;
  Relay parent_{loop_, queries_, kPeriod, clock_, owner_};
  Relay child_{loop_, queries_, kPeriod, clock_, owner_};
  Schema::Ptr schema_ = Schema::Make({Work()});
};

// As where the frames of short ticks are gathered, and the parent's own ones go first.
TEST_F(RelayTest, WhoeverIsAboveWaitsForAChildThatHasSentNothingYet) {
  Sample(parent_, 0);
  Deliver();
  EXPECT_TRUE(rows_.empty()) << "without the child";
  Sample(child_, 1);
  Deliver();
  ASSERT_EQ(rows_.size(), 1u);
  EXPECT_TRUE(rows_[0].Has(0) && rows_[0].Has(1));
}

TEST_F(RelayTest, NobodyWaitsForAChildThatHasEnded) {
  child_.SendOwnEnd(At(-1), schema_, std::vector<Reduced>(1));
  Deliver();
  Sample(parent_, 0);
  Deliver();
  ASSERT_EQ(rows_.size(), 1u);
  EXPECT_FALSE(rows_[0].Has(1));
}

// Nobody below has taken the tick, so no row of the children tells of it: above there is one.
TEST_F(RelayTest, AChildThatIsMissingWithAllOthersIsStoodInFor) {
  for (const int tick : {0, 1}) {
    Sample(parent_, 0, tick);
    Sample(child_, 1, tick);
    Deliver();
  }
  for (const int tick : {2, 3}) Sample(parent_, 0, tick);
  Deliver();
  EXPECT_EQ(handed_on_, (std::vector<Nanos>{At(1) + 1}));
  Sample(parent_, 0, 4);
  Deliver();
  EXPECT_EQ(handed_on_.size(), 1u) << "once until it sends again";
}

}  // namespace
}  // namespace sonde::tree::tree_relay_test
