// What a node answers to a question about its own series.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "daemon/node/ask/answer.h"
#include "series/query/part.h"
#include "series/store/store.h"

namespace sonde::node::node_answer_test {
namespace {

Series Named(const char* name, MetricType type) {
  Series series;
  series.metric.name = name;
  series.metric.type = type;
  return series;
}

// Of one sample at 5 s.
class NodeAnswer : public testing::Test {
 protected:
  NodeAnswer() {
    store_.SetSchema(Schema::Make(
        {Named("work_total", MetricType::kCounter), Named("load", MetricType::kGauge)}));
    store_.Append(5 * kSecond, std::vector<double>{42, 1});
  }

  // The sum at 10 to 20 s, in one bucket.
  std::vector<QueryResult> Ask(const char* metric, MetricType type) {
    QuerySpec spec;
    spec.metric = metric;
    spec.start = 10 * kSecond;
    spec.end = 20 * kSecond;
    spec.downsample = *ParseDownsample("0all-last");
    const GroupStore* const store = &store_;
    const QueryGrid grid{kSecond, {}};
    QueryPart all = *AnswerFrom({&store, 1}, spec, grid, {"n1"});
    // Of another node, which has a point there.
    SeriesData other;
    other.series = Named(metric, type);
    other.points = {{12 * kSecond, 100}};
    EXPECT_TRUE(MergePart(spec, grid, *EvaluatePart(spec, {other}, &grid), all).ok());
    return FinishPart(spec, all);
  }

  GroupStore store_{GroupStore::Options()};
};

TEST_F(NodeAnswer, HasWhatACounterHadReachedBeforeTheRange) {
  const std::vector<QueryResult> results = Ask("work_total", MetricType::kCounter);
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].points, (std::vector<Point>{{10 * kSecond, 142}}));
}

TEST_F(NodeAnswer, HasNothingOfAGaugeBeforeTheRange) {
  const std::vector<QueryResult> results = Ask("load", MetricType::kGauge);
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].points, (std::vector<Point>{{10 * kSecond, 100}}));
}

TEST_F(NodeAnswer, HasValuesOfThePastInTheirSeries) {
  GroupStore past{GroupStore::Options{.late_rows = 1}};
  past.SetSchema(Schema::Make({Named("load", MetricType::kGauge)}));
  for (const Nanos second : {12, 5, 11}) {
    past.Place(second * kSecond, [&](std::span<double> row) { row[0] = 7; });
  }
  QuerySpec spec;
  spec.metric = "load";
  spec.end = 20 * kSecond;
  const GroupStore* const store = &store_;
  const QueryGrid grid{kSecond, {}};
  const auto points = [&](const GroupStore* told) {
    QueryPart part = *AnswerFrom({&store, 1}, spec, grid, {"n1"}, told);
    const std::vector<QueryResult> results = FinishPart(spec, part);
    EXPECT_EQ(results.size(), 1u);
    return results.at(0).points;
  };
  EXPECT_EQ(points(nullptr), (std::vector<Point>{{5 * kSecond, 1}}));
  EXPECT_EQ(points(&past),
            (std::vector<Point>{{5 * kSecond, 7}, {11 * kSecond, 7}, {12 * kSecond, 7}}));
}

}  // namespace
}  // namespace sonde::node::node_answer_test
