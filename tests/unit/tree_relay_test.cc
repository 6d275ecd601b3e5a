// What passes through an inner node, and what whoever is above waits for.
#include <gtest/gtest.h>

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

namespace sonde::tree {
namespace {

constexpr Nanos kPeriod = 10 * kMillisecond;
constexpr Nanos kTick = 1'700'000'000 * kSecond;  // at which frames go that were gathered

// The head, a node below it, and a node below that.
class RelayTest : public testing::Test {
 protected:
  RelayTest() {
    clock_.time = kTick - 2 * kPeriod;
    at_head_.Add(to_parent_, 0);
    parent_.children().Add(to_child_, 1);
    for (const auto& [relay, index, link] :
         {std::tuple(&parent_, 0u, &from_parent_), {&child_, 1u, &from_child_}}) {
      relay->SetNode(index);
      relay->Use(link, false);
      relay->Announce(schema_);
    }
    Deliver();
    clock_.time = kTick;
  }

  void Sample(Relay& relay, uint32_t index) {
    std::vector<Reduced> values(1);
    values[0].Add(1, {index, Owner::kNobody});
    relay.SendOwn(kTick, schema_, {values, {}});
    relay.uplink().Flush();
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

  using Owner = sonde::Owner;

  FakeClock clock_;
  Loop loop_;
  QueryFanout queries_{loop_};
  ChildrenAlone head_owner_;
  std::vector<NodeSet> rows_;  // those that the head has, by their nodes
  TickMerger head_{16, [this](const TickMerger::Row& row, bool) { rows_.push_back(row.nodes); }};
  Children at_head_{head_,       queries_, {kPeriod, 2 * kPeriod}, Keep::kUntilArrived,
                    head_owner_, clock_};
  RelayAlone owner_;
  QueueLink from_child_;
  QueueLink to_child_;
  QueueLink from_parent_;
  QueueLink to_parent_;
  Relay parent_{loop_, queries_, kPeriod, clock_, owner_};
  Relay child_{loop_, queries_, kPeriod, clock_, owner_};
  Schema::Ptr schema_ = Schema::Make({Work()});
};

// Frames of short ticks are gathered, and a child may have sent none when its parent does.
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
  child_.SendOwnEnd(kTick - kPeriod, schema_, std::vector<Reduced>(1));
  Deliver();
  Sample(parent_, 0);
  Deliver();
  ASSERT_EQ(rows_.size(), 1u);
  EXPECT_FALSE(rows_[0].Has(1));
}

}  // namespace
}  // namespace sonde::tree
