#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "daemon/head/record/coverage_count.h"
#include "daemon/head/record/step_notes.h"
#include "daemon/head/record/step_record.h"
#include "series/query/query.h"

namespace sonde::head::head_test {
namespace {

constexpr Nanos kStart = 100 * kSecond;

Nanos At(double seconds) { return kStart + static_cast<Nanos>(seconds * kSecond); }

class Coverages : public testing::Test {
 protected:
  void Expect(const Coverage& coverage, uint64_t got, uint64_t expected) {
    EXPECT_EQ(coverage.got, got);
    EXPECT_EQ(coverage.expected, expected);
  }
  void Register(uint32_t nodes) {
    for (uint32_t node = 0; node < nodes; ++node) count_.OnRegistered(node, At(-0.8));
  }
  CoverageCount count_{kStart, kSecond};
};

tree::NodeSet Nodes(std::initializer_list<uint32_t> nodes) {
  tree::NodeSet set;
  for (const uint32_t node : nodes) set.Add(tree::NodeSet(node));
  return set;
}

TEST_F(Coverages, AStepWithoutGapsIsComplete) {
  Register(2);
  for (int tick = 1; tick <= 5; ++tick) count_.OnRow(At(tick), Nodes({0, 1}));
  Expect(count_.Now(2), 10, 10);
  for (const uint32_t node : {0u, 1u}) count_.OnBye(node, At(11), 5, 0);
  Expect(count_.Now(2), 10, 10);
  Expect(count_.AtEnd(2), 12, 12);
}

TEST_F(Coverages, ANodeThatLeavesEarlyOwesNothingAfterwards) {
  Register(2);
  count_.OnRow(At(1), Nodes({0, 1}));
  count_.OnRow(At(2), Nodes({0}));  // before its goodbye has come
  Expect(count_.Now(2), 3, 4);
  count_.OnBye(1, At(11), 1, 0);
  for (int tick = 3; tick <= 10; ++tick) count_.OnRow(At(tick), Nodes({0}));
  count_.OnBye(0, At(11), 10, 0);
  Expect(count_.AtEnd(2), 13, 13);
}

// Whoever its parent is: it is the head where all register.
TEST_F(Coverages, WhatALostNodeOwesIsMissingToTheEnd) {
  Register(2);
  count_.OnRow(At(1), Nodes({0, 1}));
  for (int tick = 2; tick <= 10; ++tick) count_.OnRow(At(tick), Nodes({0}));
  count_.OnBye(0, At(11), 10, 0);
  Expect(count_.AtEnd(2), 12, 22);
}

TEST_F(Coverages, ANodeOfWhichNothingCameOwesEveryTickFromItsRegistration) {
  Register(1);
  count_.OnRegistered(1, At(2.5));
  for (int tick = 1; tick <= 10; ++tick) count_.OnRow(At(tick), Nodes({0}));
  Expect(count_.Now(2), 10, 10 + 7);  // from 4 on
}

TEST_F(Coverages, ANodeThatNeverComesOwesEveryTickAfterTheGrace) {
  Register(1);
  for (int tick = 1; tick <= 10; ++tick) count_.OnRow(At(tick), Nodes({0}));
  count_.OnBye(0, At(11), 10, 0);
  Expect(count_.AtEnd(2), 11, 10 + 7 + 2);
}

TEST_F(Coverages, WhoeverSendsATickThatFellIntoItsRegistrationOwesIt) {
  Register(1);
  count_.OnRegistered(1, At(0.9));
  count_.OnRow(At(1), Nodes({0}));
  count_.OnRow(At(2), Nodes({0, 1}));
  count_.OnRow(At(1), Nodes({1}));  // late, and newer ones were there
  count_.OnReplaced(1, At(4.5));
  Expect(count_.Now(2), 4, 2 + 4 + 0);
  count_.OnRegistered(2, At(4.5));
  for (int tick = 3; tick <= 10; ++tick) count_.OnRow(At(tick), Nodes({0}));
  Expect(count_.Now(2), 12, 10 + 4 + 5);  // the new one from 6 on
}

// What it had sent to others was on its way still.
TEST_F(Coverages, ReplacedNodesOweNoLessThanWhatCame) {
  Register(2);
  count_.OnReplaced(0, At(0.5));
  count_.OnRegistered(2, At(0.5));
  count_.OnBye(1, At(0.6), 0, 0);
  for (int tick = 1; tick <= 3; ++tick) count_.OnRow(At(tick), Nodes({0}));
  Expect(count_.Now(2), 3, 3 + 2);  // the new one owes 2 and 3
}

TEST_F(Coverages, OfNodesThatWereGoneBeforeOnlyWhatCameCounts) {
  count_.OnGoneBefore(0);
  count_.OnRegistered(1, At(-0.8));
  count_.OnRow(At(1), Nodes({0, 1}));
  count_.OnRow(At(2), Nodes({0, 1}));
  for (int tick = 3; tick <= 10; ++tick) count_.OnRow(At(tick), Nodes({1}));
  Expect(count_.Now(2), 12, 12);
}

TEST_F(Coverages, LatePartsAndSkippedTicks) {
  Register(2);
  count_.OnRow(At(1), Nodes({0}));
  count_.OnRow(At(2), Nodes({0, 1}));
  count_.OnRow(At(1), Nodes({1}));     // late
  count_.OnRow(At(4), Nodes({0, 1}));  // 3 was skipped by both
  for (const uint32_t node : {0u, 1u}) count_.OnBye(node, At(11), 4, 1);
  Expect(count_.AtEnd(2), 8, 10);
  EXPECT_EQ(count_.AtEnd(2).skipped, 2u);
}

TEST_F(Coverages, MoreTicksThanThereWereAreNotBelieved) {
  Register(1);
  for (int tick = 1; tick <= 5; ++tick) count_.OnRow(At(tick), Nodes({0}));
  count_.OnBye(0, At(5.5), UINT64_MAX, UINT64_MAX);
  EXPECT_EQ(count_.Now(1).expected, 7u);
  EXPECT_EQ(count_.Now(1).skipped, 7u);
}

Series Named(const char* name, MetricType type) {
  Series series;
  series.metric.name = name;
  series.metric.type = type;
  return series;
}

std::vector<Reduced> Row(uint32_t node, const std::vector<double>& values) {
  std::vector<Reduced> row;
  for (const double value : values) row.emplace_back().Add(value, {node, Owner::kNobody});
  return row;
}

// Of the only group of series of the metric.
std::vector<Point> Medians(const StepRecord& record, const char* metric, bool rate) {
  QuerySpec median;
  median.metric = metric;
  median.aggregator = Aggregator::kP50;
  median.rate = rate;
  median.start = At(0);
  median.end = At(10);
  const auto answer = EvaluateReduced(
      median, record.Read([&](const Series& s) { return ReducedNeeds(median, s); }, 0, At(10)));
  if (!answer.ok() || answer->size() != 1) return {};
  return (*answer)[0].points;
}

TEST(Record, ALatePartIsMergedIntoItsRow) {
  JobDescription job;
  job.start = kStart;
  StepRecord record(job);
  std::vector<Series> series = {Named("load", MetricType::kGauge),
                                Named("bytes_total", MetricType::kCounter)};
  record.Append(At(1), Row(0, {1, 100}), series);
  record.Append(At(2), Row(0, {2, 200}), series);
  EXPECT_TRUE(record.Amend(At(1), Row(1, {5, 1000, /*a series nobody else has had:*/ 7})));
  EXPECT_TRUE(record.Amend(At(2), Row(1, {6, 2000})));
  EXPECT_FALSE(record.Amend(At(1.5), Row(1, {6, 2000}))) << "no such row";
  const auto sums =
      record.Read([](const Series& s) { return *s.tags.Find(kStatTag) == "sum"; }, 0, At(10));
  ASSERT_EQ(sums.size(), 2u);
  EXPECT_EQ(sums[0].points, (std::vector<Point>{{At(1), 6}, {At(2), 8}}));
  EXPECT_EQ(sums[1].points, (std::vector<Point>{{At(1), 1100}, {At(2), 2200}}));
  const Profile profile = record.Snapshot();
  EXPECT_EQ(profile.footprint[0].last, 8);
  EXPECT_EQ(profile.footprint[0].mean, 7);
  EXPECT_EQ(profile.footprint[1].last, 2200);
  record.Seal();
  EXPECT_FALSE(record.Amend(At(2), Row(1, {6, 2000}))) << "sealed";
}

// As when tasks come behind the first ticks: rows from before are not closed by that.
TEST(Record, ALatePartIsMergedIntoARowFromBeforeOtherSeries) {
  JobDescription job;
  job.start = kStart;
  StepRecord record(job);
  std::vector<Series> series = {Named("load", MetricType::kGauge)};
  record.Append(At(1), Row(0, {1}), series);
  series.push_back(Named("tasks", MetricType::kGauge));
  record.Append(At(2), Row(0, {2, 4}), series);
  EXPECT_TRUE(record.Amend(At(1), Row(1, {5, 8})));
  EXPECT_TRUE(record.Amend(At(2), Row(1, {6, 9})));
  const auto read = [&record] {
    return record.Read([](const Series& s) { return *s.tags.Find(kStatTag) == "sum"; }, 0, At(10));
  };
  const std::vector<Point> load = {{At(1), 6}, {At(2), 8}};
  const std::vector<Point> tasks = {{At(1), 8}, {At(2), 13}};
  for (int i = 0; i < 2; ++i, record.Seal()) {
    const auto sums = read();
    ASSERT_EQ(sums.size(), 2u);
    EXPECT_EQ(sums[0].points, load);
    EXPECT_EQ(sums[1].points, tasks);
  }
}

// Nodes send an acting head again what the head before had not stored, one after the other.
TEST(Record, OfAnActingHeadKeepsItsFirstRowsOpen) {
  JobDescription job;
  job.start = kStart;
  StepRecord record(job, StepRecord::Rows::kComeAgain);
  const std::vector<Series> series = {Named("load", MetricType::kGauge)};
  constexpr int kRows = 100;
  for (int i = 1; i <= kRows; ++i) record.Append(At(i), Row(0, {1}), series);
  for (int i = 1; i <= kRows; ++i) EXPECT_TRUE(record.Amend(At(i), Row(1, {1}))) << i;
}

TEST(Record, ALatePartIsInThePercentilesOfItsRow) {
  JobDescription job;
  job.start = kStart;
  StepRecord record(job);
  std::vector<Series> series = {Named("load", MetricType::kGauge),
                                Named("cpu_total", MetricType::kCounter)};
  series[1].metric.spread = true;
  const auto spread = [](std::initializer_list<double> values) {
    std::vector<QuantileSketch> all(1);
    for (const double value : values) all[0].Add(value);
    return all;
  };
  const std::vector<Reduced> values = Row(0, {1, 100});
  const auto first = spread({1, 2});
  const auto second = spread({4, 4, 4});
  record.Append(At(1), {values, first}, series);
  record.Append(At(2), {values, second}, series);
  const auto late = spread({3});
  EXPECT_TRUE(record.Amend(At(1), {values, late}));
  EXPECT_TRUE(record.Amend(At(1), {values, late}));
  const std::vector<Point> medians = Medians(record, "cpu_total", /*rate=*/true);
  ASSERT_EQ(medians.size(), 2u);
  EXPECT_EQ(medians[0].time, At(1));
  EXPECT_NEAR(medians[0].value, 2.5, 0.025) << "of 1, 2, 3, 3";
  EXPECT_EQ(medians[1], (Point{At(2), 4}));
  const Profile profile = record.Snapshot();
  EXPECT_FALSE(profile.footprint[0].spread);
  ASSERT_TRUE(profile.footprint[1].spread);
  EXPECT_EQ(profile.footprint[1].spread->last[1], 4);
  EXPECT_NEAR(profile.footprint[1].spread->mean[1], 3.25, 0.0325);
  // What is sealed stays, and the next block begins anew.
  record.Seal();
  EXPECT_FALSE(record.Amend(At(1), {values, late}));
  record.Append(At(3), {values, second}, series);
  EXPECT_TRUE(record.Amend(At(3), {values, late}));
}

TEST(Record, ALatePartMayHavePercentilesThatItsRowHasNot) {
  JobDescription job;
  job.start = kStart;
  StepRecord record(job);
  std::vector<Series> series = {Named("load", MetricType::kGauge)};
  record.Append(At(1), Row(0, {1}), series);
  series.push_back(Named("heat", MetricType::kGauge));
  series[1].metric.spread = true;
  std::vector<QuantileSketch> spread(1);
  spread[0].Add(3);
  const std::vector<Reduced> values = Row(1, {1, 3});
  record.Append(At(2), {values, spread}, series);
  EXPECT_TRUE(record.Amend(At(1), {values, spread}));
  EXPECT_EQ(Medians(record, "heat", /*rate=*/false), (std::vector<Point>{{At(1), 3}, {At(2), 3}}));
}

TEST(Record, WhatTheApplicationTellsIsInItsProfile) {
  JobDescription job;
  job.start = kStart;
  StepRecord record(job);
  collect::Moments moments;
  moments.annotations.reserve(3);
  Annotation& begin = moments.annotations.emplace_back();
  begin.kind = AnnotationKind::kPhaseBegin;
  begin.text = "solve";
  begin.first = begin.last = At(1);
  Annotation& figure = moments.annotations.emplace_back();
  figure.kind = AnnotationKind::kFigure;
  figure.text = "speed";
  figure.value = 7;
  figure.first = figure.last = At(2);
  Annotation& earlier = moments.annotations.emplace_back(figure);
  earlier.text = "zeal";
  earlier.first = earlier.last = At(1);
  NamedSketch& sketch = moments.sketches.emplace_back();
  sketch.series = Named("wait", MetricType::kHistogram);
  sketch.sketch.Add(100, 5);
  record.AddMoments(moments);
  record.AddMoments({{}, moments.sketches, 2});
  const Profile profile = record.Snapshot();
  ASSERT_EQ(profile.moments.phases.size(), 1u);
  EXPECT_EQ(profile.moments.phases[0].begin, At(1));
  ASSERT_EQ(profile.moments.distributions.size(), 1u);
  EXPECT_EQ(profile.moments.distributions[0].sketch.count(), 10u);
  ASSERT_EQ(profile.job.figures.size(), 2u);
  EXPECT_EQ(profile.job.figures[0].name, "zeal") << "said first";
  EXPECT_EQ(profile.job.figures[1].value, 7);
  EXPECT_EQ(record.Description().figures, profile.job.figures) << "in lists of jobs, too";
  ASSERT_EQ(profile.job.notes.size(), 1u);
  EXPECT_THAT(profile.job.notes[0], testing::StartsWith("2 remarks, phases, figures"));
}

std::vector<NodeInfo> Nodes(uint32_t count) {
  std::vector<NodeInfo> nodes(count);
  for (uint32_t i = 0; i < count; ++i) nodes[i].host = "n" + std::to_string(i + 1);
  return nodes;
}

void Tell(StepNotes& notes, uint32_t node, const std::string& text) {
  notes.AddOfNode(node, "n" + std::to_string(node + 1) + ": " + text, ": " + text);
}

TEST(StepNotes, WhatNodesTellAlikeIsOneNoteInTheOrderOfTheFirst) {
  StepNotes notes;
  Tell(notes, 1, "no events");
  notes.Add("no web server");
  Tell(notes, 0, "no events");
  Tell(notes, 2, "no room");
  Tell(notes, 1, "no events");
  notes.Add("no web server");
  EXPECT_THAT(notes.Texts(Nodes(3)),
              testing::ElementsAre("n[1-2]: no events", "no web server", "n3: no room"));
}

TEST(StepNotes, WhatIsToldOfTheStepIsNotToldOfItsNodes) {
  StepNotes notes;
  notes.Add("at most 2 here");
  Tell(notes, 0, "at most 2 here");
  Tell(notes, 1, "at most 1 here");
  EXPECT_THAT(notes.Texts({}), testing::ElementsAre("at most 2 here", "n2: at most 1 here"));
}

TEST(StepNotes, ThousandsOfNodesDoNotCrowdOthersOut) {
  constexpr uint32_t kNodes = 10'000;
  StepNotes notes;
  for (uint32_t i = 0; i < kNodes; ++i) {
    Tell(notes, i, "no cycles");
    if (i % 2 == 0) Tell(notes, i, "no instructions");
  }
  EXPECT_THAT(notes.Texts(Nodes(kNodes)),
              testing::ElementsAre("10000 nodes: no cycles", "5000 nodes: no instructions"));
}

// As when a parent that knows a lost node's last values hands them on a while later.
TEST(StepNotes, ALossIsToldByWhatIsKnownOfTheValuesWhenItIsRead) {
  constexpr char kStay[] = "n[1-2] were lost: link; their values stay as they last sent them";
  StepNotes notes;
  notes.AddLost(1, "link", false);
  EXPECT_THAT(
      notes.Texts(Nodes(3)),
      testing::ElementsAre("node n2 was lost: link; what it counted is missing from the totals"));
  notes.AddLost(0, "link", true);
  EXPECT_THAT(
      notes.Texts(Nodes(3)),
      testing::ElementsAre("node n1 was lost: link; its values stay as it last sent them",
                           "node n2 was lost: link; what it counted is missing from the totals"));
  notes.SetCounted(1, true);
  EXPECT_THAT(notes.Texts(Nodes(3)), testing::ElementsAre(kStay));
  notes.AddLost(2, "silence", true);
  EXPECT_THAT(notes.Texts(Nodes(3)),
              testing::ElementsAre(
                  kStay, "node n3 was lost: silence; its values stay as it last sent them"));
  for (const uint32_t node : {0u, 1u}) notes.SetCounted(node, false);
  EXPECT_EQ(notes.Texts(Nodes(3)).front(),
            "n[1-2] were lost: link; what they counted is missing from the totals");
}

TEST(StepNotes, ThereIsALimitAndItTells) {
  StepNotes notes;
  for (uint32_t i = 0; i < StepNotes::kMaxNotes + 2; ++i) Tell(notes, i, std::to_string(i));
  Tell(notes, 5, "0");
  const std::vector<std::string> texts = notes.Texts(Nodes(100));
  ASSERT_EQ(texts.size(), StepNotes::kMaxNotes + 1);
  EXPECT_EQ(texts.front(), "n[1,6]: 0");
  EXPECT_THAT(texts.back(), testing::StartsWith("2 more notes were not kept"));
}

TEST(StepRecord, HasItsNotesWhereverItIsDescribed) {
  JobDescription job;
  job.nodes = Nodes(2);
  StepRecord record(job);
  for (const uint32_t node : {0u, 1u}) record.AddNoteOfNode(node, "n: late", ": late");
  record.AddNote("over");
  EXPECT_THAT(record.Description().notes, testing::ElementsAre("n[1-2]: late", "over"));
  EXPECT_THAT(record.Snapshot().job.notes, testing::ElementsAre("n[1-2]: late", "over"));
  EXPECT_EQ(record.Host(1), "n2");
}

}  // namespace
}  // namespace sonde::head::head_test
