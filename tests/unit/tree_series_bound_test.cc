// A step whose nodes tell of more series than a schema has room for, through real relays: the first
// ones go up to the head with their values, the others are counted, and no link is dropped.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "daemon/head/record/ended_nodes.h"
#include "daemon/loop.h"
#include "daemon/tree/children/children.h"
#include "daemon/tree/children/relay.h"
#include "daemon/tree/ended_parts.h"
#include "daemon/tree/last_known.h"
#include "daemon/tree/query_fanout.h"
#include "daemon/tree/series_union.h"
#include "daemon/tree/tick_merger.h"
#include "fake_clock.h"
#include "queue_link.h"
#include "tree_owners.h"

namespace sonde::tree::tree_series_bound_test {
namespace {

using testing::HasSubstr;

constexpr Nanos kPeriod = 500 * kMillisecond;

// As of an application that puts a number of its own into a tag.
std::vector<Series> Numbered(size_t from, size_t to) {
  Series series;
  series.metric.name = "count";
  series.metric.type = MetricType::kCounter;
  std::vector<Series> all;
  for (size_t i = from; i < to; ++i) {
    series.tags.Set("number", std::to_string(i));
    all.push_back(series);
  }
  return all;
}

// Each series' value is its number.
std::vector<Reduced> Values(size_t from, size_t to, uint32_t node) {
  std::vector<Reduced> values(to - from);
  for (size_t i = from; i < to; ++i) {
    values[i - from].Add(static_cast<double>(i), {node, sonde::Owner::kNobody});
  }
  return values;
}

// The head, a node below it, and nodes below that, which divide the series among them.
class TreeOfManySeries : public ChildrenAlone, public testing::Test {
 protected:
  static constexpr uint32_t kChildren = 3;

  struct Child {
    QueueLink up, down;
    RelayAlone owner;
    std::unique_ptr<Relay> relay;
  };

  TreeOfManySeries() {
    clock_.time = At(-2);
    at_head_.Add(to_parent_, 0);
    parent_.SetNode(0);
    parent_.Use(&from_parent_, false);
    parent_.Announce(own_);
    for (uint32_t i = 0; i < kChildren; ++i) {
      Child& child = children_[i];
      child.relay = std::make_unique<Relay>(loop_, queries_, kPeriod, clock_, child.owner);
      parent_.children().Add(child.down, i + 1);
      child.relay->SetNode(i + 1);
      child.relay->Use(&child.up, false);
    }
  }

  static Nanos At(int tick) { return 1'700'000'000 * kSecond + tick * kPeriod; }

  void OnEnded(const FrameInfo& info, const Schema::Ptr& schema, std::span<const Reduced> values,
               TickMerger::Source /*source*/) override {
    EXPECT_EQ(ended_.Add(info, head_.ColumnsOf(*schema), values), EndedNodes::Fate::kAdded);
  }

  // A tick of all nodes; the i-th child has the i-th part of the series.
  void Tick(int tick, size_t series) {
    clock_.time = At(tick);
    for (uint32_t i = 0; i < kChildren; ++i) {
      const size_t from = series * i / kChildren, to = series * (i + 1) / kChildren;
      const Schema::Ptr schema = Schema::Make(Numbered(from, to));
      children_[i].relay->SendOwn(clock_.time, schema, {Values(from, to, i + 1), {}});
      last_[i] = {schema, Values(from, to, i + 1)};
    }
    SendOwn();
    Deliver();
  }

  void SendOwn() {
    std::vector<Reduced> values(1);
    parent_.SendOwn(clock_.time, own_, {values, {}});
    parent_.FlushTick();
  }

  void End() {
    for (uint32_t i = 0; i < kChildren; ++i) {
      children_[i].relay->SendOwnEnd(clock_.time, last_[i].first, last_[i].second);
    }
    Deliver();
    parent_.SendRest();
    Deliver();
  }

  void Deliver() {
    for (Child& child : children_) {
      child.relay->uplink().Flush();
      for (const auto& [type, payload] : std::exchange(child.up.queue, {})) {
        const Status taken = parent_.children().OnMessage(child.down, type, payload);
        ASSERT_TRUE(taken.ok()) << "the link is closed then: " << taken.message();
        parent_.OnChildrenChanged();
      }
    }
    loop_.Post([this] { loop_.Stop(); });
    loop_.Run();
    parent_.uplink().Flush();
    for (const auto& [type, payload] : std::exchange(from_parent_.queue, {})) {
      ASSERT_LE(payload.size(), kMaxMessage);
      const Status taken = at_head_.OnMessage(to_parent_, type, payload);
      ASSERT_TRUE(taken.ok()) << "the link is closed then: " << taken.message();
    }
  }

  FakeClock clock_;
  Loop loop_;
  QueryFanout queries_{loop_};
  // What the head has of each tick, late parts with it.
  struct Row {
    NodeSet nodes;
    std::vector<Reduced> values;
  };
  std::map<Nanos, Row> rows_;
  TickMerger head_{16, [this](const TickMerger::Row& part, bool) {
                     Row& row = rows_[part.tick];
                     row.nodes.Add(part.nodes);
                     row.values.resize(std::max(row.values.size(), part.values.size()));
                     for (size_t i = 0; i < part.values.size(); ++i) {
                       row.values[i].Merge(part.values[i]);
                     }
                   }};
  EndedNodes ended_;
  Children at_head_{head_, queries_, {kPeriod, 2 * kPeriod}, Keep::kUntilArrived, *this, clock_};
  RelayAlone owner_;
  QueueLink from_parent_, to_parent_;
  Relay parent_{loop_, queries_, kPeriod, clock_, owner_};
  Schema::Ptr own_ = Schema::Make(Numbered(0, 1));
  Child children_[kChildren];
  std::pair<Schema::Ptr, std::vector<Reduced>> last_[kChildren];
};

class AroundTheBound : public TreeOfManySeries, public testing::WithParamInterface<size_t> {};

TEST_P(AroundTheBound, TheFirstOnesGoUpAndTheOthersAreCounted) {
  const size_t kept = std::min(GetParam(), kMaxSeries), left_out = GetParam() - kept;
  for (const int tick : {0, 1}) ASSERT_NO_FATAL_FAILURE(Tick(tick, GetParam()));
  ASSERT_EQ(rows_.size(), 2u);
  for (const auto& [tick, row] : rows_) {
    EXPECT_EQ(row.nodes.size(), kChildren + 1);
    ASSERT_EQ(row.values.size(), kept);
    for (size_t i = 0; i < kept; ++i) ASSERT_EQ(row.values[i].sum, static_cast<double>(i));
  }
  EXPECT_EQ(parent_.series().left_out(), left_out);
  if (left_out > 0) {
    EXPECT_THAT(parent_.series().LeftOutNote(),
                HasSubstr("the first of them count{number=\"65536\"}"));
  }
  ASSERT_NO_FATAL_FAILURE(End());
  const std::vector<Reduced> total = ended_.Final(head_.series().size());
  ASSERT_EQ(total.size(), kept);
  for (size_t i = 0; i < kept; ++i) ASSERT_EQ(total[i].sum, static_cast<double>(i));
}

INSTANTIATE_TEST_SUITE_P(Of, AroundTheBound,
                         testing::Values(size_t{65'535}, size_t{65'536}, size_t{65'537}),
                         testing::PrintToStringParamName());

// Ever new ones, as of an application that puts the time into a tag.
TEST_F(TreeOfManySeries, TenMillionOneAfterTheOtherTakeTheRoomOfTheFirst) {
  constexpr size_t kAtATime = 65'000, kAll = 10'000'000;
  Relay& child = *children_[0].relay;
  int tick = 0;
  for (size_t from = 0; from < kAll; from += kAtATime, ++tick) {
    clock_.time = At(tick);
    const size_t to = std::min(from + kAtATime, kAll);
    child.SendOwn(clock_.time, Schema::Make(Numbered(from, to)), {Values(from, to, 1), {}});
    SendOwn();
    ASSERT_NO_FATAL_FAILURE(Deliver());
    ASSERT_EQ(rows_.size(), 1u);
    ASSERT_EQ(rows_.begin()->second.nodes.size(), 2u);
    rows_.clear();
  }
  EXPECT_EQ(parent_.series().size(), kMaxSeries);
  EXPECT_EQ(parent_.series().left_out(), kMaxSeries) << "of more it is not known which they were";
  EXPECT_EQ(head_.series().size(), kMaxSeries);
}

// Long texts take the room before there are so many.
TEST_F(TreeOfManySeries, TextsThatNoMessageHoldsAreLeftOut) {
  std::mt19937 random(1);
  std::uniform_int_distribution<int> any('!', '~');
  std::vector<Series> series = Numbered(0, 60'000);
  for (Series& one : series) {
    std::string text;
    for (int i = 0; i < 120; ++i) text.push_back(static_cast<char>(any(random)));
    one.tags.Set("text", text);
  }
  for (uint32_t i = 0; i < kChildren; ++i) {
    const std::vector<Series> some(series.begin() + 20'000 * i, series.begin() + 20'000 * (i + 1));
    clock_.time = At(0);
    children_[i].relay->SendOwn(clock_.time, Schema::Make(some),
                                {Values(0, some.size(), i + 1), {}});
  }
  SendOwn();
  ASSERT_NO_FATAL_FAILURE(Deliver());
  const size_t kept = parent_.series().size();
  EXPECT_GT(kept, 20'000u);
  EXPECT_LT(kept, 60'000u);
  EXPECT_EQ(parent_.series().left_out(), 60'000 - kept);
  ASSERT_EQ(rows_.size(), 1u);
  EXPECT_EQ(rows_.begin()->second.nodes.size(), kChildren + 1);
}

TEST(SeriesBound, WhatIsKnownOfANodeHasIt) {
  LastKnown known;
  known.Add(*Schema::Make(Numbered(0, 40'000)), Values(0, 40'000, 1));
  known.Add(*Schema::Make(Numbered(40'000, 80'000)), Values(40'000, 80'000, 1));
  EXPECT_EQ(known.Get().schema->size(), kMaxSeries);
  const KnownValues all =
      known.With(Schema::Make(Numbered(100'000, 140'000)), Values(100'000, 140'000, 1));
  EXPECT_EQ(all.schema->size(), kMaxSeries);
  EXPECT_EQ(all.values.size(), kMaxSeries);
  EXPECT_EQ(all.values[39'999].sum, 139'999);
  EXPECT_EQ(all.values[40'000].sum, 0);
}

}  // namespace
}  // namespace sonde::tree::tree_series_bound_test
