// Merging frames by tick, and what nodes that have ended leave in the totals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>

#include "daemon/head/record/ended_nodes.h"
#include "daemon/tree/ended_parts.h"
#include "daemon/tree/tick_merger.h"

namespace sonde::tree::tree_merging_test {
namespace {

Reduced One(double value, Owner owner) {
  Reduced r;
  r.Add(value, owner);
  return r;
}

NodeSet SetOf(std::initializer_list<uint32_t> nodes) {
  NodeSet set;
  for (const uint32_t node : nodes) set.Add(NodeSet(node));
  return set;
}

Series Gauge(std::string name) {
  Series s;
  s.metric.name = std::move(name);
  return s;
}

Series Counter(std::string name) {
  Series s = Gauge(std::move(name));
  s.metric.type = MetricType::kCounter;
  return s;
}

struct Row {
  Nanos tick;
  uint32_t nodes;
  bool late;
  std::map<std::string, Reduced> values;
  std::vector<uint64_t> numbers;
};

class Merging : public testing::Test {
 protected:
  TickMerger::Id Child(std::vector<Series> series, Nanos joined = 0) {
    const TickMerger::Id id = merger.AddContributor(joined);
    merger.SetSchema(id, Schema::Make(std::move(series)));
    return id;
  }
  TickMerger::Fate Send(TickMerger::Id id, uint32_t node, Nanos tick,
                        const std::vector<double>& values) {
    return Send(id, NodeSet(node), tick, values);
  }
  TickMerger::Fate Send(TickMerger::Id id, const NodeSet& nodes, Nanos tick,
                        const std::vector<double>& values) {
    Frame frame;
    frame.number = ++number;
    frame.tick = tick;
    frame.nodes = nodes;
    for (const double v : values) frame.values.push_back(One(v, {nodes.first(), Owner::kNobody}));
    return merger.Add(id, frame, id);
  }

  // What `node` had when it ended.
  EndedNodes::Fate Ended(uint32_t node, Nanos when, std::vector<Series> series,
                         const std::vector<double>& values, bool lost = false) {
    FrameInfo info;
    info.stream = Stream::kEnded;
    info.tick = when;
    info.lost = lost;
    info.nodes = NodeSet(node);
    std::vector<Reduced> last;
    last.reserve(values.size());
    for (const double v : values) last.push_back(One(v, {node, Owner::kNobody}));
    return ended.Add(info, merger.ColumnsOf(*Schema::Make(std::move(series))), last);
  }

  // As the head does it.
  void OnRow(const TickMerger::Row& merged, bool late) {
    TickMerger::Row whole = merged;
    if (!late) ended.AddTo(whole, merger.series(), merger.Present());
    Row row{whole.tick, static_cast<uint32_t>(whole.nodes.size()), late, {}, {}};
    for (size_t i = 0; i < whole.values.size(); ++i) {
      row.values[merger.series()[i].metric.name] = whole.values[i];
    }
    for (const TickMerger::Source& source : whole.sources) row.numbers.push_back(source.number);
    rows.push_back(std::move(row));
  }

  uint64_t number = 0;
  std::vector<Row> rows;
  EndedNodes ended;
  TickMerger merger{4, [this](const TickMerger::Row& row, bool late) { OnRow(row, late); }};
};

TEST_F(Merging, ATickIsCompleteWhenAllHaveSentTheirs) {
  const auto a = Child({Gauge("load"), Gauge("memory")});
  const auto b = Child({Gauge("memory"), Gauge("load")});  // another order
  Send(a, 0, 10, {1.0, 100});
  EXPECT_TRUE(rows.empty());
  Send(b, 1, 10, {300, 3.0});
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].nodes, 2u);
  EXPECT_EQ(rows[0].values["load"].sum, 4.0);
  EXPECT_EQ(rows[0].values["memory"].max, 300);
  EXPECT_EQ(rows[0].values["memory"].max_owner.node, 1u);
  EXPECT_EQ(rows[0].values["load"].min_owner.node, 0u);
}

TEST_F(Merging, AMissingPartDoesNotHoldTheTickForEverAndIsNotLostWhenItComes) {
  const auto a = Child({Gauge("load")});
  const auto b = Child({Gauge("load")});
  Send(a, 0, 10, {1});
  EXPECT_EQ(merger.oldest(), 10);
  merger.EmitUpTo(10);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].nodes, 1u);
  Send(b, 1, 10, {5});
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_TRUE(rows[1].late);
  EXPECT_EQ(rows[1].values["load"].sum, 5);
}

TEST_F(Merging, TicksAreEmittedInOrderAndOneThatWasLeftOutIsNotWaitedFor) {
  const auto a = Child({Gauge("load")});
  const auto b = Child({Gauge("load")});
  Send(a, 0, 10, {1});
  Send(a, 0, 20, {1});
  EXPECT_TRUE(rows.empty());
  Send(b, 1, 20, {1});  // links keep their order: its 10 will not come
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].tick, 10);
  EXPECT_EQ(rows[0].nodes, 1u);
  EXPECT_EQ(rows[1].tick, 20);
  EXPECT_EQ(rows[1].nodes, 2u);
}

// What it sent itself, and comes late, is not added to that; but it is where the row has nothing of
// it: of a counter that was known of another one only, or that nobody had in that row.
TEST_F(Merging, ALatePartGivesTheCountersThatNothingStoodInFor) {
  const std::vector<Series> series = {Counter("bytes_total"), Counter("calls_total"),
                                      Counter("new_total"), Gauge("load")};
  const auto a = Child({Counter("bytes_total"), Counter("new_total")});
  Child({Counter("calls_total")});  // is waited for, and has none
  Ended(1, 11, {Counter("bytes_total"), Counter("calls_total")}, {100, 7}, /*lost=*/true);
  Ended(2, 11, {Counter("new_total")}, {3}, /*lost=*/true);
  Send(a, 0, 20, {5, 1});
  merger.EmitUpTo(20);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].values["bytes_total"].sum, 105);
  EXPECT_EQ(rows[0].values["calls_total"].count, 0);
  EXPECT_EQ(rows[0].values["new_total"].sum, 4);
  std::vector<Reduced> sent(4);
  for (Reduced& value : sent) value.Add(110, {1, sonde::Owner::kNobody});
  const auto late = [&](Nanos tick, uint32_t node) {
    std::vector<Reduced> values(merger.series().size());
    const std::vector<uint32_t> columns = merger.ColumnsOf(*Schema::Make(series));
    values.resize(merger.series().size());
    for (size_t i = 0; i < columns.size(); ++i) values[columns[i]] = sent[i];
    const bool stood_in = ended.StoodIn(tick, NodeSet(node), values);
    std::vector<double> counts;
    counts.reserve(columns.size());
    for (const uint32_t column : columns) counts.push_back(values[column].count);
    return std::pair(stood_in, counts);
  };
  EXPECT_EQ(late(20, 1), (std::pair(true, std::vector<double>{0, 1, 1, 1})));
  EXPECT_EQ(late(20, 2), (std::pair(true, std::vector<double>{1, 1, 0, 1})));
  EXPECT_EQ(late(20, 0), (std::pair(false, std::vector<double>{1, 1, 1, 1})));
  EXPECT_EQ(late(10, 1), (std::pair(false, std::vector<double>{1, 1, 1, 1})));
}

TEST_F(Merging, ANewcomerIsNotWaitedForInTicksBeforeIt) {
  const auto a = Child({Gauge("load")});
  Send(a, 0, 10, {1});
  Child({Gauge("load")}, /*joined=*/15);
  ASSERT_EQ(rows.size(), 1u);
  Send(a, 0, 20, {1});
  EXPECT_EQ(rows.size(), 1u) << "20 waits for the newcomer";
}

TEST_F(Merging, TicksWaitForOneThatIsOnItsWayToAnotherLink) {
  const auto a = Child({Counter("bytes_total")});
  const auto b = Child({Counter("bytes_total")});
  Send(a, 0, 10, {1});
  Send(b, 1, 10, {1});
  merger.Leave(a, /*until=*/25);
  Send(b, 1, 20, {2});
  EXPECT_EQ(rows.size(), 1u);
  const auto again = Child({Counter("bytes_total")}, 12);
  merger.Remove(a);
  EXPECT_EQ(rows.size(), 1u);
  Send(again, 0, 20, {2});
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[1].nodes, 2u);
}

TEST_F(Merging, TicksDoNotWaitForOneThatHasGoneElsewhere) {
  const auto a = Child({Counter("bytes_total")});
  const auto b = Child({Counter("bytes_total")});
  merger.Leave(a, /*until=*/15);
  Send(b, 1, 10, {1});
  EXPECT_TRUE(rows.empty());
  Send(b, 1, 20, {2});
  merger.EmitUpTo(10);
  ASSERT_EQ(rows.size(), 2u) << "one that was waited for in vain, and what had come meanwhile";
  Send(b, 1, 30, {3});
  EXPECT_EQ(rows.size(), 3u);
}

TEST_F(Merging, SeriesThatAppearLaterGoToTheEnd) {
  const auto a = Child({Gauge("load")});
  Send(a, 0, 10, {1});
  merger.SetSchema(a, Schema::Make({Gauge("temperature"), Gauge("load")}));
  Send(a, 0, 20, {55, 2});
  EXPECT_EQ(merger.series()[0].metric.name, "load");
  EXPECT_EQ(rows[1].values["temperature"].sum, 55);
  EXPECT_EQ(rows[1].values["load"].sum, 2);
}

TEST_F(Merging, OneThatComesBackOverAnotherLinkIsWaitedForAsBefore) {
  const auto a = Child({Gauge("load")});
  const auto b = Child({Gauge("load")});
  Send(a, 0, 10, {1});
  Send(b, 1, 10, {1});
  merger.Leave(a, 30);
  Send(b, 1, 20, {1});
  ASSERT_EQ(rows.size(), 1u) << "20 waits for a";
  merger.Leave(a, 0);
  merger.SetSchema(a, Schema::Make({Gauge("load")}));
  Send(b, 1, 40, {1});
  ASSERT_EQ(rows.size(), 1u) << "20 still does, and 40 as well";
  Send(a, 0, 20, {4});
  Send(a, 0, 40, {5});
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[1].values["load"].sum, 5);
  EXPECT_EQ(rows[2].nodes, 2u);
}

// Whoever comes, leaves, comes back and goes: ticks are emitted when a plain look at all
// contributors says that none is waited for.
class MergingAtRandom : public Merging, public testing::WithParamInterface<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Seeds, MergingAtRandom, testing::Range(1u, 6u));

TEST_P(MergingAtRandom, TicksWaitForWhomAPlainCountWaitsFor) {
  struct Known {
    TickMerger::Id id;
    uint32_t node;
    Nanos joined;
    Nanos last = 0;
    Nanos leaves = 0;
  };
  std::mt19937 random(GetParam());
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  std::vector<Known> known;
  std::set<Nanos> waiting;
  std::vector<Nanos> emitted;
  const auto emit = [&] {
    while (!waiting.empty()) {
      const Nanos tick = *waiting.begin();
      const bool complete = std::none_of(known.begin(), known.end(), [&](const Known& k) {
        return k.joined < tick && k.last < tick && (k.leaves == 0 || k.leaves >= tick);
      });
      if (!complete) return;
      emitted.push_back(tick);
      waiting.erase(tick);
      std::erase_if(known, [&](const Known& k) { return k.leaves != 0 && k.leaves <= tick; });
    }
  };
  uint32_t next_node = 0;
  for (int step = 0; step < 20'000; ++step) {
    const Nanos newest = emitted.empty() ? 0 : emitted.back();
    const size_t what = below(8);
    if (known.size() < 3 || what == 0) {
      const Nanos joined = newest + static_cast<Nanos>(below(2));
      known.push_back({Child({Gauge("g")}, joined), next_node++, joined});
      continue;
    }
    Known& one = known[below(known.size())];
    if (what == 1) {
      one.leaves = newest + 1 + static_cast<Nanos>(below(3));
      EXPECT_TRUE(merger.Leave(one.id, one.leaves));
    } else if (what == 2) {
      one.leaves = 0;
      EXPECT_TRUE(merger.Leave(one.id, 0));
    } else if (what == 3) {
      const TickMerger::Id id = one.id;
      std::erase_if(known, [&](const Known& k) { return k.id == id; });
      emit();
      merger.Remove(id);
    } else {
      const Nanos tick = std::max(one.last, newest) + 1 + static_cast<Nanos>(below(4));
      one.last = tick;
      waiting.insert(tick);
      const TickMerger::Id id = one.id;
      const uint32_t node = one.node;
      emit();
      Send(id, node, tick, {1});
    }
    ASSERT_EQ(rows.size(), emitted.size()) << "step " << step;
    ASSERT_EQ(rows.empty() ? 0 : rows.back().tick, emitted.empty() ? 0 : emitted.back());
  }
}

TEST_F(Merging, WhatComesASecondTimeIsDropped) {
  const auto a = Child({Gauge("load")});
  const auto b = Child({Gauge("load")});
  EXPECT_EQ(Send(a, SetOf({0, 1}), 10, {1}), TickMerger::Fate::kMerged);
  EXPECT_EQ(Send(b, 1, 10, {1}), TickMerger::Fate::kCovered) << "by itself, of those merged above";
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].values["load"].count, 1);
  EXPECT_EQ(rows[0].nodes, 2u);
  EXPECT_THAT(rows[0].numbers, testing::ElementsAre(1, 2)) << "it has arrived with the other";
  EXPECT_EQ(Send(b, 0, 10, {1}), TickMerger::Fate::kRepeated) << "when the tick is over as well";
  EXPECT_EQ(Send(b, 7, 10, {1}), TickMerger::Fate::kMerged);
  EXPECT_EQ(Send(b, 7, 10, {1}), TickMerger::Fate::kRepeated) << "and of what came late";
  EXPECT_EQ(rows.size(), 2u);
}

TEST_F(Merging, APartOfWhichSomeNodesAreThereIsDroppedAndTold) {
  const auto a = Child({Gauge("load")});
  const auto b = Child({Gauge("load")});
  Send(a, 0, 10, {1});
  EXPECT_EQ(Send(b, SetOf({0, 1}), 10, {9}), TickMerger::Fate::kOverlaps);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].values["load"].sum, 1);
  EXPECT_EQ(Send(b, SetOf({0, 1}), 10, {9}), TickMerger::Fate::kOverlaps);
}

TEST_F(Merging, ATickThatIsForgottenTakesNoMore) {
  const auto a = Child({Gauge("load")});
  for (Nanos tick = 10; tick <= 60; tick += 10) Send(a, 0, tick, {1});
  EXPECT_EQ(Send(a, 1, 20, {1}), TickMerger::Fate::kTooLate);
  EXPECT_EQ(Send(a, 1, 30, {1}), TickMerger::Fate::kMerged);
  EXPECT_EQ(Send(a, 1, 35, {1}), TickMerger::Fate::kMerged) << "of which nobody had anything";
}

// --- Nodes that have ended ---

TEST_F(Merging, CountersOfThoseThatEndedStayInTheTotals) {
  const std::vector<Series> series = {Counter("bytes_total"), Gauge("load")};
  const auto a = Child(series);
  const auto b = Child(series);
  Send(a, 0, 10, {100, 1});
  Send(b, 1, 10, {10, 2});
  EXPECT_EQ(Ended(0, 14, series, {120, 7}), EndedNodes::Fate::kAdded);
  merger.Remove(a);
  Send(b, 1, 20, {30, 2});
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].values["bytes_total"].sum, 110);
  EXPECT_EQ(rows[1].values["bytes_total"].sum, 150);
  EXPECT_EQ(rows[1].nodes, 1u);
  EXPECT_EQ(rows[1].values["load"].sum, 2) << "gauges of the gone are gone";
  EXPECT_EQ(Ended(0, 14, series, {120, 7}), EndedNodes::Fate::kRepeated) << "a second time";
  EXPECT_EQ(Ended(1, 25, series, {40, 3}), EndedNodes::Fate::kAdded);
  const std::vector<Reduced> last = ended.Final(2);
  EXPECT_EQ(last[0].sum, 160);
  EXPECT_EQ(last[1].sum, 10);
}

// A metric that is not sampled at every tick has no value between, and not that of the gone alone.
TEST_F(Merging, CountersOfThoseThatEndedWaitForATickAtWhichTheOthersHaveThem) {
  const double none = std::nan("");
  const auto a = Child({Counter("faults_total"), Counter("only_a_total")});
  const auto b = Child({Counter("faults_total")});
  Send(a, 0, 10, {100, 1});
  Send(b, 1, 10, {10});
  Ended(0, 14, {Counter("faults_total"), Counter("only_a_total")}, {120, 2});
  merger.Remove(a);
  Send(b, 1, 20, {none});
  Send(b, 1, 30, {15});
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[1].values["faults_total"].count, 0);
  EXPECT_EQ(rows[1].values["only_a_total"].sum, 2) << "nobody who is there has it";
  EXPECT_EQ(rows[2].values["faults_total"].sum, 135);
  EXPECT_EQ(rows[2].values["faults_total"].count, 2);
}

TEST_F(Merging, LastValuesDoNotCountTwiceInATickThatStillWaits) {
  const auto a = Child({Counter("bytes_total")});
  const auto b = Child({Counter("bytes_total")});
  Send(a, 0, 10, {100});
  Ended(0, 14, {Counter("bytes_total")}, {120});
  merger.Remove(a);
  Send(b, 1, 10, {1});
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].values["bytes_total"].sum, 101);
}

TEST_F(Merging, ALostOneCountsAsItWasLastSeenUntilItIsBackOrSpeaksForItself) {
  const std::vector<Series> series = {Counter("bytes_total")};
  const auto a = Child(series);
  const auto b = Child(series);
  Send(a, 0, 10, {100});
  Send(b, 1, 10, {1});
  EXPECT_EQ(Ended(0, 11, series, {100}, /*lost=*/true), EndedNodes::Fate::kAdded);
  EXPECT_TRUE(ended.Has(0));
  merger.Remove(a);
  Send(b, 1, 20, {2});
  EXPECT_EQ(rows[1].values["bytes_total"].sum, 102);
  const auto again = Child(series, 25);
  Send(b, 1, 30, {3});
  Send(again, 0, 30, {300});
  EXPECT_EQ(rows[2].values["bytes_total"].sum, 303) << "it is back";
  EXPECT_FALSE(ended.Has(0));
  Ended(0, 31, series, {300}, /*lost=*/true);
  Ended(0, 32, series, {310});
  EXPECT_EQ(ended.Final(1)[0].sum, 310);
  EXPECT_EQ(Ended(0, 33, series, {300}, /*lost=*/true), EndedNodes::Fate::kRepeated)
      << "it has said so itself";
}

TEST(EndedParts, BecomeOneFrameAndEachNodeIsInItOnce) {
  EndedParts parts;
  EXPECT_TRUE(parts.empty());
  const auto info = [](NodeSet nodes, Nanos tick) {
    FrameInfo i;
    i.stream = Stream::kEnded;
    i.tick = tick;
    i.nodes = std::move(nodes);
    return i;
  };
  const Schema::Ptr one = Schema::Make({Counter("a_total")});
  const Schema::Ptr two = Schema::Make({Counter("b_total"), Counter("a_total")});
  EXPECT_TRUE(parts.Add(info(NodeSet(1), 30), *one, {{One(5, {1, 0})}}, {7, 1}));
  EXPECT_TRUE(parts.Add(info(SetOf({2, 3}), 20), *two, {{One(1, {2, 0}), One(2, {2, 0})}}, {8, 4}));
  EXPECT_FALSE(parts.Add(info(NodeSet(3), 20), *one, {{One(9, {3, 0})}}, {9, 1}));
  const EndedParts::Part part = parts.Take();
  EXPECT_EQ(part.info.tick, 30);
  EXPECT_EQ(part.info.nodes, SetOf({1, 2, 3}));
  ASSERT_EQ(part.schema->size(), 2u);
  EXPECT_EQ(part.values[0].sum, 7);
  EXPECT_EQ(part.values[1].sum, 1);
  EXPECT_EQ(part.sources.size(), 2u);
  EXPECT_TRUE(parts.empty());
  EXPECT_TRUE(parts.Add(info(NodeSet(3), 40), *one, {{One(9, {3, 0})}}, {9, 1}));
  EXPECT_EQ(parts.Take().values[0].sum, 9);
}

// What is not sampled at a tick has no value in the row, though all that could have it have ended
// by the time at which the row is made.
TEST_F(Merging, WhatIsNotSampledAtATickIsMissingFromARowThatIsMadeLate) {
  const double none = std::nan("");
  const TickMerger::Id early = Child({Counter("slow")});
  const TickMerger::Id node = Child({Counter("slow")});
  const TickMerger::Id stuck = Child({Gauge("load")});
  Send(early, 0, 1, {3});
  Send(node, 1, 1, {4});
  Send(stuck, 2, 1, {1});
  ASSERT_EQ(rows.size(), 1u);
  Ended(0, 2, {Counter("slow")}, {3});
  merger.Remove(early);
  Send(node, 1, 2, {none});
  Ended(1, 3, {Counter("slow")}, {5});
  merger.Remove(node);
  Send(stuck, 2, 2, {1});
  Send(stuck, 2, 3, {1});
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[1].values["slow"].count, 0);
  EXPECT_EQ(rows[2].values["slow"].sum, 8) << "of all that counted";
}

}  // namespace
}  // namespace sonde::tree::tree_merging_test
