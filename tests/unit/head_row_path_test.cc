// The way of rows at a head beside which another one may store rows of the same step.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "daemon/head/record/row_path.h"
#include "daemon/tree/uplink.h"
#include "fake_clock.h"
#include "queue_link.h"

namespace sonde::head::head_row_path_test {
namespace {

using testing::ElementsAre;
using tree::NodeSet;
using tree::Stream;

constexpr Nanos kBegin = 1000 * kSecond;
Nanos At(int tick) { return kBegin + tick * kSecond; }

class NobodyAsks final : public RowPath::Owner {
 public:
  void OnBlock(tree::BlockMessage /*block*/) override {}
  void OnJoinedBlocks(const JoinedBlocks& /*joined*/, std::string_view /*bytes*/) override {}
  void OnMoments(const collect::Moments& /*moments*/) override {}
  void OnNewRow(const tree::TickMerger::Row& /*row*/,
                const std::vector<Series>& /*series*/) override {}
  void OnRecorded(Nanos /*tick*/, bool /*late*/) override {}
  void OnLastValues(uint32_t /*first*/, bool /*lost*/) override {}
};

JobDescription StepOfThree() {
  JobDescription job;
  job.start = kBegin;
  job.period = kSecond;
  job.expected_nodes = 3;
  return job;
}

Series WorkDone() {
  Series series;
  series.metric.name = "work_total";
  series.metric.type = MetricType::kCounter;
  return series;
}

// Node 0 is the head's child and the parent of node 1, which is away; of node 2 nothing is known.
class RowPaths : public testing::Test {
 protected:
  void Come() {
    rows_.children().Add(to_head_, 0);
    uplink_.Announce(Stream::kOwn, schema_);
    uplink_.Use(&from_node_, false);
    Deliver();
  }

  // Another head stored the rows of all three up to tick 10, and in `state` what node 1 had
  // counted.
  void Inherit(double counted) {
    JobDescription before = StepOfThree();
    before.nodes.resize(3);
    before.presence = {{At(1), 3, 3, 0, 0}};
    rows_.SetNotAlone();
    rows_.Inherit(before, At(10));
    const std::vector<uint32_t> columns = rows_.ColumnsOf(*schema_);
    const std::vector<Reduced> values = {Value(1, counted)};
    rows_.InheritLastValues(Lost(1, 10), columns, values);
  }

  void Sample(int tick, double counted) {
    clock_.time = At(tick);
    tree::FrameInfo info;
    info.tick = At(tick);
    info.stream = Stream::kOwn;
    info.nodes = NodeSet(0);
    Send(info, Value(0, counted));
  }

  // The samples of node 1, which node 0 had late and sends on.
  void SampleBelow(int tick, double counted) {
    tree::FrameInfo info;
    info.tick = At(tick);
    info.stream = Stream::kChildren;
    info.nodes = NodeSet(1);
    Send(info, Value(1, counted));
  }

  // What node 1 had counted when it was lost, and that counts from that tick on.
  void HandOn(int tick, double counted) { Send(Lost(1, tick), Value(1, counted)); }

  std::vector<Nanos> Runs() const {
    std::vector<Nanos> runs;
    for (const PresenceRun& run : *record_.PresenceNow()) runs.push_back(run.first);
    return runs;
  }

  std::vector<double> Sums() const {
    std::vector<double> sums;
    const std::vector<SeriesData> columns =
        record_.Read([](const Series&) { return true; }, 0, At(1000));
    for (const Point& point : Column(columns, "sum")) sums.push_back(point.value);
    return sums;
  }

  // What a reader makes of the rows, behind one of the head before.
  double TotalAfter(const Reduced& row) {
    CounterTotal total;
    RowNodes nodes;
    const StepRecord::PresenceRuns runs = record_.PresenceNow();
    nodes.Changed(*runs, At(10));
    double last = total.Add(row, nodes.changes());
    const std::vector<SeriesData> columns =
        record_.Read([](const Series&) { return true; }, 0, At(1000));
    const std::vector<Point>& counts = Column(columns, "count");
    const std::vector<Point>& sums = Column(columns, "sum");
    EXPECT_EQ(counts.size(), sums.size());
    for (size_t i = 0; i < sums.size() && i < counts.size(); ++i) {
      nodes.Changed(*runs, sums[i].time);
      Reduced value;
      value.count = counts[i].value;
      value.sum = sums[i].value;
      last = total.Add(value, nodes.changes());
    }
    return last;
  }

 private:
  static Reduced Value(uint32_t node, double counted) {
    Reduced value;
    value.Add(counted, {node, sonde::Owner::kNobody});
    return value;
  }
  static tree::FrameInfo Lost(uint32_t node, int tick) {
    tree::FrameInfo info;
    info.tick = At(tick);
    info.stream = Stream::kEnded;
    info.lost = true;
    info.nodes = NodeSet(node);
    return info;
  }
  void Send(tree::FrameInfo info, const Reduced& value) {
    const std::vector<Reduced> values = {value};
    uplink_.AddFrame(info, schema_, {values, {}});
    uplink_.Flush();
    Deliver();
  }
  void Deliver() {
    for (const auto& [type, payload] : std::exchange(from_node_.queue, {})) {
      ASSERT_TRUE(rows_.children().OnMessage(to_head_, type, payload).ok());
    }
  }
  static const std::vector<Point>& Column(const std::vector<SeriesData>& columns,
                                          std::string_view stat) {
    static const std::vector<Point> kNothing;
    for (const SeriesData& column : columns) {
      if (*column.series.tags.Find(kStatTag) == stat) return column.points;
    }
    return kNothing;
  }

  FakeClock clock_;
  Loop loop_;
  StepClock time_{0, clock_};
  tree::QueryFanout queries_{loop_};
  const Schema::Ptr schema_ = Schema::Make({WorkDone()});
  tree::Uplink uplink_;
  tree::QueueLink from_node_;
  tree::QueueLink to_head_;
  NobodyAsks nobody_;

 protected:
  StepRecord record_{StepOfThree()};
  RowPath rows_{loop_, time_, record_, queries_, nobody_};
};

// The head before goes on, and has node 1 in rows up to tick 13, of which the acting head knows
// nothing: the total of these is 20 + 14 + 30. No value that node 1 had by then is newly counted.
TEST_F(RowPaths, OfAnActingHeadBeginARunWhereverOtherValuesStandIn) {
  Inherit(10);
  Come();
  Sample(14, 20);
  HandOn(15, 12);
  Sample(15, 21);
  Sample(16, 21);
  HandOn(17, 14);
  Sample(17, 22);
  Sample(18, 23);
  EXPECT_THAT(Runs(), ElementsAre(At(1), At(11), At(14), At(15), At(17)));
  Reduced all;
  for (const double value : {20.0, 14.0, 30.0}) all.Add(value, {0, sonde::Owner::kNobody});
  const double total = TotalAfter(all);
  EXPECT_LE(total, 23 + 14 + 30);
  EXPECT_GE(total, 20 + 14 + 30);
}

// Node 0 tells an acting head again what happened: node 1 was late at each tick, and something
// stood in for it. In no row is that what node 1 has, which comes a little later.
TEST_F(RowPaths, OfAnActingHeadHaveNoOldValuesOfNodesWhoseOwnComeAgain) {
  rows_.Gather();
  Inherit(0);
  Come();
  for (int tick = 11; tick < 14; ++tick) {
    Sample(tick, 20);
    HandOn(tick, tick - 1);
    SampleBelow(tick, tick);
  }
  rows_.Finish(At(14));
  EXPECT_THAT(Sums(), ElementsAre(31, 32, 33));
}

// A head alone knows what rows have. A node that is late at each tick costs it no runs.
TEST_F(RowPaths, OfAHeadAloneGoOnWhereNewerValuesStandIn) {
  Come();
  HandOn(1, 10);
  Sample(1, 20);
  for (int tick = 2; tick < 10; ++tick) {
    HandOn(tick, 10 + tick);
    Sample(tick, 20 + tick);
  }
  EXPECT_THAT(Runs(), ElementsAre(At(1)));
  // Out of reach for a while, it may be alone no more.
  rows_.SetNotAlone();
  HandOn(10, 30);
  Sample(10, 30);
  EXPECT_THAT(Runs(), ElementsAre(At(1), At(10)));
}

// The fabric has not said yet that its link is gone, and no row goes without it.
TEST_F(RowPaths, OfALostNodeWhoseLinkStaysEndWithItsValues) {
  Come();
  Sample(1, 20);
  rows_.OnLost(0, "it hangs");
  rows_.Finish(At(2));
  EXPECT_THAT(Sums(), ElementsAre(20, 20));
}

// Node 1 went from one parent to another: what the first one knew of it came last.
TEST_F(RowPaths, GoOnWithTheNewestThatALostNodeCounted) {
  Come();
  HandOn(3, 12);
  HandOn(2, 11);
  Sample(3, 20);
  rows_.Finish(At(4));
  ASSERT_FALSE(Sums().empty());
  EXPECT_EQ(Sums().front(), 32);
}

}  // namespace
}  // namespace sonde::head::head_row_path_test
