// Counters of a running step whose nodes have ended: what its head answers of them, alone and as a
// part of an answer about several steps (docs/queries.md, "Counters").
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/head/answers/live_source.h"
#include "tests/unit/answering_nodes.h"

namespace sonde::head::head_counters_test {
namespace {

constexpr Nanos kStart = 1'000'000 * kSecond;

Nanos At(int tick) { return kStart + tick * kSecond; }

// Of two nodes n2 ends behind the third tick. It counts 10 at a tick and n1 1.
class HeadCounters : public testing::Test {
 protected:
  HeadCounters() {
    JobDescription job;
    job.start = kStart;
    job.id = {"7", "0"};
    job.nodes.resize(2);
    job.nodes[0].host = "n1";
    job.nodes[1].host = "n2";
    job.nodes[1].left = At(3) + 1;
    record_ = std::make_unique<StepRecord>(job);
    record_->SetPresence({{At(1), 2, 2, 0, 0}, {At(4), 1, 0, 1, 0}});
    Series work;
    work.metric.name = "work_total";
    work.metric.type = MetricType::kCounter;
    for (int tick = 1; tick <= 6; ++tick) {
      std::vector<Reduced> row(1);
      row[0].Add(tick, {0, Owner::kNobody});
      row[0].Add(10 * std::min(tick, 3), {1, Owner::kNobody});
      record_->Append(At(tick), row, {work});
    }
    auto nodes = std::make_shared<AnsweringNodes>(
        [this](const QuerySpec& spec, const QueryGrid& grid, const tree::QueryFanout::Done& done) {
          ++asked_;
          done(AnswerOfTheOneLeft(spec, grid));
        });
    source_ = std::make_unique<LiveSource>(*record_, std::move(nodes), nullptr,
                                           [](const std::function<void()>& finish) { finish(); });
  }

  static tree::Gathered AnswerOfTheOneLeft(const QuerySpec& spec, const QueryGrid& grid) {
    SeriesData data;
    data.series.metric.name = "work_total";
    data.series.metric.type = MetricType::kCounter;
    data.series.tags = {{"host", "n1"}};
    for (int tick = 1; tick <= 6; ++tick) data.points.push_back({At(tick), tick * 1.0});
    tree::Gathered answer;
    answer.part = *EvaluatePart(spec, {data}, &grid);
    answer.nodes = 1;
    return answer;
  }

  static QuerySpec Ask(Aggregator aggregator) {
    QuerySpec spec;
    spec.metric = "work_total";
    spec.aggregator = aggregator;
    spec.start = At(1);
    spec.end = At(10);
    return spec;
  }
  web::PartAnswer Part(const QuerySpec& spec) {
    std::optional<Result<web::PartAnswer>> part;
    source_->QueryForPart(spec, {kSecond, {}}, [&](auto answer) { part = std::move(answer); });
    EXPECT_TRUE(part && part->ok());
    return part && part->ok() ? **std::move(part) : web::PartAnswer{EmptyPart(spec), 0, 0};
  }

  int asked_ = 0;  // of nodes
  std::unique_ptr<StepRecord> record_;
  std::unique_ptr<LiveSource> source_;
};

TEST_F(HeadCounters, ThePartOfASumHasTheNodesThatHaveEnded) {
  for (const Aggregator aggregator : {Aggregator::kSum, Aggregator::kZimsum, Aggregator::kPfsum}) {
    const QuerySpec spec = Ask(aggregator);
    const std::vector<QueryResult> results = FinishPart(spec, Part(spec).part);
    ASSERT_EQ(results.size(), 1u);
    const std::vector<Point> sum = {{At(1), 11}, {At(2), 22}, {At(3), 33},
                                    {At(4), 34}, {At(5), 35}, {At(6), 36}};
    EXPECT_EQ(results[0].points, sum) << ToString(aggregator);
    EXPECT_EQ(results[0].tags, (Tags{{"job", "7.0"}}));
    EXPECT_THAT(results[0].aggregate_tags, testing::ElementsAre("host"));
  }
  EXPECT_EQ(asked_, 0);
}

TEST_F(HeadCounters, ThePartOfASumMergesWithThatOfAnotherStep) {
  QuerySpec spec = Ask(Aggregator::kSum);
  spec.downsample = *ParseDownsample("2s-last");
  SeriesData other;
  other.series.metric.name = "work_total";
  other.series.metric.type = MetricType::kCounter;
  other.series.tags = {{"host", "n9"}, {"job", "8.0"}};
  other.points = {{At(2), 100}, {At(8), 400}};
  const QueryGrid grid{kSecond, {}};
  QueryPart part = *EvaluatePart(spec, {other}, &grid);
  ASSERT_TRUE(MergePart(spec, grid, Part(spec).part, part).ok());
  const std::vector<QueryResult> results = FinishPart(spec, part);
  ASSERT_EQ(results.size(), 1u);
  const std::vector<Point> sum = {{At(2), 133}, {At(4), 235}, {At(6), 336}, {At(8), 436}};
  EXPECT_EQ(results[0].points, sum);
  EXPECT_THAT(results[0].aggregate_tags, testing::ElementsAre("host", "job"));
}

// Rows lack what a lost node counts from then on, and a node that has not come yet.
TEST_F(HeadCounters, AnswersFromRowsSayWhichNodesAreMissing) {
  const auto nodes = [&] {
    std::optional<Result<web::Answer>> answer;
    source_->Query(Ask(Aggregator::kSum), [&](auto told) { answer = std::move(told); });
    EXPECT_TRUE(answer && answer->ok());
    const web::PartAnswer part = Part(Ask(Aggregator::kSum));
    EXPECT_EQ(part.nodes_answered, (*answer)->nodes_answered);
    EXPECT_EQ(part.nodes_expected, (*answer)->nodes_expected);
    return std::pair((*answer)->nodes_answered, (*answer)->nodes_expected);
  };
  EXPECT_EQ(nodes(), std::pair(2u, 2u)) << "n2 has ended";
  record_->Update([](JobDescription& job) { job.nodes[1].lost = true; });
  EXPECT_EQ(nodes(), std::pair(1u, 2u));
  record_->Update([](JobDescription& job) { job.expected_nodes = 4; });
  EXPECT_EQ(nodes(), std::pair(1u, 4u));
}

}  // namespace
}  // namespace sonde::head::head_counters_test
