// A finished step of many nodes: its rows answer, and where a node is missing in them the nodes'
// series do.
#include "serve/whole_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "profiles/archive/open_archive.h"
#include "series/store/past.h"
#include "tests/unit/profiles_fixture.h"

namespace sonde::serve::whole_step_test {
namespace {

constexpr uint32_t kNodes = 70;
constexpr int kTicks = 30;
constexpr uint32_t kAbsent = 3;  // from the rows of these ticks
constexpr int kFrom = 10;
constexpr int kTo = 12;
constexpr int kPastTick = 8;
constexpr double kPastValue = 5;

Nanos At(int tick) { return kTestStart + tick * kSecond; }

double Load(uint32_t node, int tick) { return node * 100 + tick % 7; }
double Work(uint32_t node, int tick) { return (node + 1) * tick; }

std::vector<Series> Measured() {
  Series load = TestSeries("load", MetricType::kGauge);
  load.metric.spread = true;
  return {load, TestSeries("work_total", MetricType::kCounter)};
}

class WholeStepTest : public testing::Test {
 protected:
  // `stored`: of which nodes the archive has series; `presence`: whether it is known who is in
  // rows.
  void Finish(uint32_t stored = kNodes, bool presence = true) {
    JobDescription job = TestJob();
    job.nodes.clear();
    for (uint32_t node = 0; node < kNodes; ++node) {
      NodeInfo& info = job.nodes.emplace_back();
      info.host = "n" + std::to_string(node);
      info.joined = At(1) - kMillisecond;
      info.left = At(kTicks) + kMillisecond;
    }
    job.expected_nodes = kNodes;
    auto live = LiveArchive::Create(root(), job);
    ASSERT_TRUE(live.ok()) << live.status().message();
    for (uint32_t node = kNodes - stored; node < kNodes; ++node) PutNode(**live, node);
    PutRows(**live);
    Profile profile;
    profile.job = job;
    profile.job.state = EndState::kCompleted;
    profile.job.end = At(kTicks) + 2 * kMillisecond;
    if (presence) {
      profile.job.presence = {{At(1), kNodes, kNodes, 0, 0},
                              {At(kFrom), kNodes - 1, 0, 1, 0},
                              {At(kTo + 1), kNodes, 1, 0, At(kFrom - 1)}};
    }
    ASSERT_TRUE((*live)->PutProfile(profile).ok());
    ASSERT_TRUE((*live)->Finish().ok());
    auto archive = OpenArchive(root());
    ASSERT_TRUE(archive.ok()) << archive.status().message();
    archive_ = archive->reader;
    step_ = archive_->List()->front();
  }

  web::Answer Ask(const QuerySpec& spec) const {
    Result<web::Answer> answer = AnswerWholeStep(*archive_, step_, spec, *SeriesFilter::Make(spec));
    EXPECT_TRUE(answer.ok()) << answer.status().message();
    return answer.ok() ? *std::move(answer) : web::Answer();
  }
  // From all series of all nodes.
  static std::vector<Point> Expected(const QuerySpec& spec) {
    std::vector<SeriesData> all;
    for (uint32_t node = 0; node < kNodes; ++node) {
      SeriesData& one = all.emplace_back();
      one.series = Measured()[spec.metric == "load" ? 0 : 1];
      one.series.tags.Set("host", std::to_string(node));
      for (int tick = 1; tick <= kTicks; ++tick) {
        one.points.push_back(
            {At(tick), spec.metric == "load" ? Load(node, tick) : Work(node, tick)});
      }
    }
    return Evaluate(spec, std::move(all))->front().points;
  }
  static QuerySpec Question(std::string_view metric, Aggregator aggregator, bool rate = false) {
    QuerySpec spec;
    spec.metric = metric;
    spec.aggregator = aggregator;
    spec.rate = rate;
    spec.start = At(4);
    spec.end = At(20);
    return spec;
  }

 private:
  std::string root() const { return dir_.path() + "/archive"; }

  void PutNode(LiveArchive& live, uint32_t node) const {
    const int ticks = node == cut_ ? kFrom / 2 : kTicks;
    std::vector<Nanos> times;
    std::vector<double> columns(2 * static_cast<size_t>(ticks));
    for (int tick = 1; tick <= ticks; ++tick) {
      times.push_back(At(tick));
      columns[static_cast<size_t>(tick - 1)] = Load(node, tick);
      columns[static_cast<size_t>(ticks + tick - 1)] = Work(node, tick);
    }
    const auto schema = Schema::Make(Measured());
    ASSERT_TRUE(live.PutBlock({node, "os", 1}, *schema, MakeBlock(*schema, times, columns)).ok());
    if (!past_) return;
    const auto told = Schema::Make({Measured()[0]});
    const std::vector<Nanos> when = {At(kPastTick)};
    ASSERT_TRUE(live.PutBlock({node, "past", 1}, *told, MakeBlock(*told, when, {kPastValue})).ok());
  }

  void PutRows(LiveArchive& live) const {
    std::vector<Series> series = Measured();
    if (past_) series.push_back(PastCounterOf("load"));
    const auto schema = ReducedSchema(series);
    std::vector<Nanos> times;
    std::vector<double> columns(schema->size() * kTicks);
    for (int tick = 1; tick <= kTicks; ++tick) {
      times.push_back(At(tick));
      std::vector<Reduced> row(series.size());
      QuantileSketch spread;
      for (uint32_t node = 0; node < kNodes; ++node) {
        const bool absent = node == kAbsent && tick >= kFrom && tick <= kTo;
        const Owner owner{node, Owner::kNobody};
        if (!absent) row[0].Add(Load(node, tick), owner);
        if (!absent) spread.Add(Load(node, tick));
        row[1].Add(Work(node, absent ? kFrom - 1 : tick), owner);  // what it had last
        if (past_) row[2].Add(1, owner);
      }
      std::vector<double> cells(schema->size());
      const Spread percentiles = SpreadOf(spread);
      ToColumns(series, row, {&percentiles, 1}, cells);
      for (size_t c = 0; c < cells.size(); ++c) {
        columns[c * kTicks + static_cast<size_t>(tick - 1)] = cells[c];
      }
    }
    ASSERT_TRUE(
        live.PutBlock({kReducedNode, "reduced", 1}, *schema, MakeBlock(*schema, times, columns))
            .ok());
  }

  TempDir dir_;

 protected:
  uint32_t cut_ = kNodes;  // of whom only the first block is stored
  bool past_ = false;      // each node has told a load of the past
  std::shared_ptr<const Archive> archive_;
  ProfileEntry step_;
};

TEST_F(WholeStepTest, TheSeriesAnswerWhereANodeIsMissingInRows) {
  Finish();
  for (const char* metric : {"load", "work_total"}) {
    for (const Aggregator aggregator : {Aggregator::kSum, Aggregator::kAvg, Aggregator::kMin,
                                        Aggregator::kMax, Aggregator::kCount}) {
      for (const bool rate : {false, true}) {
        const bool extreme = aggregator == Aggregator::kMin || aggregator == Aggregator::kMax;
        if (rate && extreme) continue;  // rows do not answer
        const QuerySpec spec = Question(metric, aggregator, rate);
        const web::Answer answer = Ask(spec);
        ASSERT_EQ(answer.results.size(), 1u) << metric << ToString(aggregator) << rate;
        EXPECT_EQ(answer.results[0].points, Expected(spec))
            << metric << ' ' << ToString(aggregator) << rate;
        EXPECT_EQ(answer.rows_only, "");
      }
    }
  }
}

// It was refused as it did not fit into the profile, or is damaged. What all nodes have counted is
// not less for it.
TEST_F(WholeStepTest, WhereABlockOfAnotherNodeIsMissingRowsAnswerACounterAndSaySo) {
  cut_ = 60;
  Finish();
  const web::Answer answer = Ask(Question("work_total", Aggregator::kSum));
  ASSERT_EQ(answer.results.size(), 1u);
  EXPECT_THAT(answer.rows_only, testing::HasSubstr("missing in their series"));
  double last = 0;
  for (const Point& point : answer.results[0].points) {
    EXPECT_GE(point.value, last) << (point.time - kTestStart) / kSecond;
    last = point.value;
  }
}

TEST_F(WholeStepTest, PercentilesAreThoseOfAllNodesToo) {
  Finish();
  const QuerySpec spec = Question("load", Aggregator::kP5);  // the absent node is one of the least
  const web::Answer answer = Ask(spec);
  ASSERT_EQ(answer.results.size(), 1u);
  const std::vector<Point> expected = Expected(spec);
  ASSERT_EQ(answer.results[0].points.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(answer.results[0].points[i].time, expected[i].time);
    EXPECT_NEAR(answer.results[0].points[i].value, expected[i].value, 0.01 * expected[i].value);
  }
  EXPECT_EQ(answer.rows_only, "");
}

// As it is with a profile of an older release.
TEST_F(WholeStepTest, TheSeriesAnswerWhereItIsNotKnownWhoIsInRows) {
  Finish(kNodes, /*presence=*/false);
  const QuerySpec spec = Question("work_total", Aggregator::kSum, /*rate=*/true);
  const web::Answer answer = Ask(spec);
  ASSERT_EQ(answer.results.size(), 1u);
  EXPECT_EQ(answer.results[0].points, Expected(spec));
  EXPECT_EQ(answer.rows_only, "");
}

// Node 0 has no series in the archive, and is in all rows: without it the sum would fall.
TEST_F(WholeStepTest, WhereSeriesLackWhatRowsHaveRowsAnswerAndTheAnswerSaysSo) {
  Finish(kNodes - 1);
  const QuerySpec spec = Question("load", Aggregator::kSum);
  const web::Answer answer = Ask(spec);
  ASSERT_EQ(answer.results.size(), 1u);
  std::vector<Point> expected = Expected(spec);
  for (Point& p : expected) {
    if (p.time >= At(kFrom) && p.time <= At(kTo)) {
      p.value -= Load(kAbsent, static_cast<int>((p.time - kTestStart) / kSecond));
    }
  }
  EXPECT_EQ(answer.results[0].points, expected);
  EXPECT_THAT(answer.rows_only, testing::HasSubstr("missing in their series"));
}

// Where every node is in the rows their series are not read.
TEST_F(WholeStepTest, OfAMetricWithValuesOfThePastTheSeriesAnswer) {
  past_ = true;
  Finish();
  const QuerySpec spec = Question("load", Aggregator::kSum);
  const web::Answer answer = Ask(spec);
  EXPECT_EQ(answer.rows_only, "");
  std::vector<Point> expected = Expected(spec);
  for (Point& p : expected) {
    if (p.time == At(kPastTick)) p.value = kNodes * kPastValue;
  }
  ASSERT_EQ(answer.results.size(), 1u);
  EXPECT_EQ(answer.results[0].points, expected);
  // Other metrics are as they were.
  EXPECT_EQ(Ask(Question("work_total", Aggregator::kSum)).results.at(0).points,
            Expected(Question("work_total", Aggregator::kSum)));
}

// A sum is better than an error, and says what it lacks.
TEST_F(WholeStepTest, WhereTheseSeriesCannotBeHadRowsAnswerWithoutThePast) {
  past_ = true;
  Finish(kNodes - 1);
  const QuerySpec spec = Question("load", Aggregator::kSum);
  const web::Answer answer = Ask(spec);
  EXPECT_NE(answer.rows_only, "");
  ASSERT_EQ(answer.results.size(), 1u);
  EXPECT_EQ(answer.results[0].points.size(), Expected(spec).size());
}

TEST_F(WholeStepTest, RowsAnswerWhereAllNodesAreInThem) {
  Finish(kNodes - 1);
  QuerySpec spec = Question("load", Aggregator::kSum);
  spec.start = At(kTo + 2);
  const web::Answer answer = Ask(spec);
  ASSERT_EQ(answer.results.size(), 1u);
  EXPECT_EQ(answer.results[0].points, Expected(spec));
  EXPECT_EQ(answer.rows_only, "");
}

}  // namespace
}  // namespace sonde::serve::whole_step_test
