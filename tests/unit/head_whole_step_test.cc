// Questions about the whole running step: rows answer where they are right, and the nodes' series
// elsewhere. Where rows answer alone although nodes are missing, the answer says so.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/unit/head_measured_step.h"

namespace sonde::head::head_whole_step_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// Of three nodes n2 is missing in the rows of ticks 4 and 5, n3 ends behind tick 6.
class RunningWholeStep : public testing::Test {
 protected:
  void Make(MetricType type = MetricType::kGauge) {
    step_ = std::make_unique<MeasuredStep>(type);
    step_->AddNode("n1", 1, 30);
    step_->AddNode("n2", 1, 30, {4, 5});
    step_->End(step_->AddNode("n3", 1, 6));
    step_->Begin(20);
  }
  std::vector<Point> PointsOf(const QuerySpec& spec) {
    const auto answer = step_->Ask(spec);
    EXPECT_TRUE(answer.ok()) << answer.status().message();
    if (!answer.ok() || answer->results.empty()) return {};
    EXPECT_EQ(answer->rows_only, "");
    return answer->results.front().points;
  }
  // Without what is in no row yet.
  std::vector<Point> Expected(const QuerySpec& spec, int newest = 20) {
    std::vector<Point> points = step_->Expected(spec);
    std::erase_if(points, [&](const Point& p) { return p.time > MeasuredStep::At(newest); });
    return points;
  }

  std::unique_ptr<MeasuredStep> step_;
};

TEST_F(RunningWholeStep, AnswersWhatAllSeriesAnswer) {
  for (const MetricType type : {MetricType::kGauge, MetricType::kCounter}) {
    Make(type);
    for (const Aggregator aggregator : {Aggregator::kSum, Aggregator::kAvg, Aggregator::kMin,
                                        Aggregator::kMax, Aggregator::kCount}) {
      for (const int first : {0, 3, 7, 12}) {
        QuerySpec spec = step_->Sum(first, 25);
        spec.aggregator = aggregator;
        EXPECT_EQ(PointsOf(spec), Expected(spec)) << ToString(aggregator) << " from " << first;
      }
    }
    QuerySpec rate = step_->Sum(0, 25);
    rate.rate = true;
    const std::vector<Point> points = PointsOf(rate);
    const std::vector<Point> expected = Expected(rate);
    ASSERT_EQ(points.size(), expected.size());
    for (size_t i = 0; i < points.size(); ++i) {
      EXPECT_EQ(points[i].time, expected[i].time);
      EXPECT_DOUBLE_EQ(points[i].value, expected[i].value);
    }
  }
}

TEST_F(RunningWholeStep, AsksNobodyWhereRowsAreRight) {
  Make();
  EXPECT_THAT(PointsOf(step_->Sum(10, 25)), SizeIs(11));
  EXPECT_EQ(step_->asked(), 0);
}

// A page that asks every second.
TEST_F(RunningWholeStep, AsksOnceForWhatDoesNotChangeAnyMore) {
  Make();
  ASSERT_THAT(PointsOf(step_->Sum(0, 25)), Not(IsEmpty()));
  const int asked = step_->asked();
  EXPECT_GT(asked, 0);
  for (int newest = 21; newest < 24; ++newest) {
    step_->AddRow(newest);
    const QuerySpec spec = step_->Sum(0, newest + 5);
    EXPECT_EQ(PointsOf(spec), Expected(spec, newest));
  }
  EXPECT_EQ(step_->asked(), asked);
  // The range moves on and leaves the start of the step behind.
  for (int start = 1; start < 4; ++start) {
    const QuerySpec spec = step_->Sum(start, 25);
    EXPECT_EQ(PointsOf(spec), Expected(spec, 23));
  }
  EXPECT_EQ(step_->asked(), 2 * asked);
  QuerySpec other = step_->Sum(0, 25);
  other.aggregator = Aggregator::kAvg;
  PointsOf(other);
  EXPECT_EQ(step_->asked(), 3 * asked) << "another question";
}

TEST_F(RunningWholeStep, OfANodeThatIsMissingNowTheSeriesAnswerToItsNewestPoint) {
  step_ = std::make_unique<MeasuredStep>();
  step_->AddNode("n1", 1, 9);
  step_->AddNode("n2", 1, 9, {7, 8});
  step_->Begin(8);
  const QuerySpec spec = step_->Sum(3, 12);
  EXPECT_EQ(PointsOf(spec), step_->Expected(spec));
}

TEST_F(RunningWholeStep, WhereANodeDoesNotAnswerRowsAnswerAndSaySo) {
  step_ = std::make_unique<MeasuredStep>();
  step_->AddNode("n1", 1, 9);
  const uint32_t hangs = step_->AddNode("n2", 1, 9, {7, 8});
  step_->SetAnswers(hangs, false);
  step_->Begin(8);
  const auto answer = step_->Ask(step_->Sum(3, 12));
  ASSERT_TRUE(answer.ok());
  EXPECT_THAT(answer->rows_only, HasSubstr("not answered"));
  ASSERT_THAT(answer->results, SizeIs(1));
  EXPECT_EQ(answer->results[0].points.back(), (Point{MeasuredStep::At(8), 108}));
  const int asked = step_->asked();
  EXPECT_THAT(step_->Ask(step_->Sum(3, 13))->rows_only, HasSubstr("does not answer"));
  EXPECT_EQ(step_->asked(), asked) << "nobody waits for it again while rows lack it";
  EXPECT_EQ(step_->Ask(step_->Sum(3, 6))->rows_only, "") << "it was there";
}

// It is in the newest row; of each of many gaps the answer would wait for it.
TEST_F(RunningWholeStep, OneAnswerWaitsForASilentNodeOnce) {
  step_ = std::make_unique<MeasuredStep>();
  step_->AddNode("n1", 1, 1000);
  step_->SetAnswers(step_->AddNode("n2", 1, 1000, {200, 400, 600, 800}), false);
  step_->Begin(1000);
  const auto answer = step_->Ask(step_->Sum(0, 1200));
  ASSERT_TRUE(answer.ok());
  EXPECT_THAT(answer->rows_only, HasSubstr("not answered"));
  EXPECT_EQ(step_->asked(), 1);
}

TEST_F(RunningWholeStep, WhereSeriesLackWhatRowsHaveRowsAnswerAndSaySo) {
  for (const MetricType type : {MetricType::kGauge, MetricType::kCounter}) {
    step_ = std::make_unique<MeasuredStep>(type);
    step_->AddNode("n1", 1, 9);
    step_->AddNode("n2", 1, 9, {4});
    step_->Lose(step_->AddNode("n3", 1, 6), 4);  // points of 7
    step_->Begin(9);
    const auto answer = step_->Ask(step_->Sum(0, 12));
    ASSERT_TRUE(answer.ok());
    EXPECT_THAT(answer->rows_only, HasSubstr("missing in their series"));
    EXPECT_EQ(answer->nodes_answered, 2u);
    EXPECT_EQ(answer->nodes_expected, 3u);
  }
}

TEST_F(RunningWholeStep, WhereStoredSeriesCannotBeReadRowsAnswerAndSaySo) {
  Make();
  step_->CannotBeRead();
  const auto answer = step_->Ask(step_->Sum(0, 25));
  ASSERT_TRUE(answer.ok());
  EXPECT_THAT(answer->rows_only, HasSubstr("cannot be read"));
}

// Of many gaps the first ones are asked for; the next question goes on from there.
TEST_F(RunningWholeStep, ThatThereIsTooMuchIsNotKeptForEver) {
  step_ = std::make_unique<MeasuredStep>();
  step_->AddNode("n1", 1, 3000);
  std::set<int> missing;
  for (int tick = 150; tick < 3000; tick += 150) missing.insert(tick);
  step_->AddNode("n2", 1, 3000, missing);
  step_->Begin(3000);
  const QuerySpec spec = step_->Sum(0, 3600);
  const auto too_much = step_->Ask(spec);
  ASSERT_TRUE(too_much.ok());
  EXPECT_THAT(too_much->rows_only, HasSubstr("more than 16 times"));
  std::vector<Point> expected = step_->Expected(spec);
  expected.pop_back();  // beside the newest tick
  EXPECT_NE(too_much->results.at(0).points, expected);
  EXPECT_EQ(PointsOf(spec), expected);
}

// For a server that adds up the parts of several steps.
TEST_F(RunningWholeStep, APartOfACounterIsOfTheNodesWhereRowsLackSome) {
  Make(MetricType::kCounter);
  const auto part_of = [&](const QuerySpec& spec) {
    std::optional<Result<web::PartAnswer>> part;
    step_->source().QueryForPart(spec, {kSecond, {}}, [&](auto told) { part = std::move(told); });
    EXPECT_TRUE(part && part->ok());
    return **std::move(part);
  };
  const QuerySpec spec = step_->Sum(0, 15);
  const web::PartAnswer of_nodes = part_of(spec);
  EXPECT_GT(step_->asked(), 0);
  EXPECT_EQ(of_nodes.rows_only, "");
  EXPECT_EQ(FinishPart(spec, of_nodes.part).at(0).points, step_->Expected(spec));
  const int asked = step_->asked();
  EXPECT_EQ(part_of(step_->Sum(10, 15)).rows_only, "");
  EXPECT_EQ(step_->asked(), asked) << "rows are right there";
  step_->SetAnswers(1, false);
  EXPECT_THAT(part_of(spec).rows_only, HasSubstr("not answered"));
}

// A node that came now; of a metric that is in no row the nodes are asked, if some came or left.
TEST_F(RunningWholeStep, WhereAMetricHasNoRowItsNodesAreAskedIfSomeCameOrLeft) {
  step_ = std::make_unique<MeasuredStep>();
  step_->AddNode("n1", 1, 9);
  step_->Begin(0);
  EXPECT_THAT(PointsOf(step_->Sum(0, 12)), IsEmpty()) << "nobody knows of the metric";
  EXPECT_EQ(step_->asked(), 0);
}

}  // namespace
}  // namespace sonde::head::head_whole_step_test
