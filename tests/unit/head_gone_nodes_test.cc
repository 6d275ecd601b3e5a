// Nodes of a running step that are gone, in answers of which the nodes' series are asked: the head
// answers in their place from what they have stored.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/head_measured_step.h"

namespace sonde::head::head_gone_nodes_test {
namespace {

using testing::SizeIs;

QuerySpec ByHost(QuerySpec spec) {
  spec.filters = {{TagFilter::Type::kWildcard, "host", "*", true}};
  return spec;
}

// Answers of hosts together: rows do not answer them.
QuerySpec OfHosts(QuerySpec spec) {
  spec.filters = {{TagFilter::Type::kWildcard, "host", "*", false}};
  return spec;
}

TEST(GoneNodes, AreInAnswersByHost) {
  MeasuredStep step;
  step.AddNode("n1", 1, 9);
  step.End(step.AddNode("n2", 1, 4));
  step.Begin(9);
  const auto answer = step.Ask(ByHost(step.Sum(0, 10)));
  ASSERT_TRUE(answer.ok()) << answer.status().message();
  ASSERT_THAT(answer->results, SizeIs(2));
  EXPECT_EQ(answer->results[1].tags, (Tags{{"host", "n2"}, {"job", "7.0"}}));
  EXPECT_THAT(answer->results[1].points, SizeIs(6));
  EXPECT_EQ(answer->nodes_answered, 2u);
  EXPECT_EQ(answer->nodes_expected, 2u);
}

TEST(GoneNodes, AreInSumsAsIfAllSeriesLayInOnePlace) {
  for (const MetricType type : {MetricType::kGauge, MetricType::kCounter}) {
    MeasuredStep step(type);
    step.AddNode("n1", 1, 9);
    step.End(step.AddNode("n2", 1, 4));
    step.End(step.AddNode("n3", 3, 6));
    step.Begin(9);
    for (const char* downsample : {"", "2s-avg", "3s-first", "4s-max"}) {
      for (const bool rate : {false, true}) {
        for (const Aggregator aggregator :
             {Aggregator::kSum, Aggregator::kAvg, Aggregator::kMax, Aggregator::kCount,
              Aggregator::kP50, Aggregator::kMedian}) {
          QuerySpec spec = OfHosts(step.Sum(0, 10));
          spec.aggregator = aggregator;
          spec.rate = rate;
          if (*downsample != '\0') spec.downsample = *ParseDownsample(downsample);
          const auto answer = step.Ask(spec);
          ASSERT_TRUE(answer.ok()) << answer.status().message();
          ASSERT_THAT(answer->results, SizeIs(1));
          EXPECT_EQ(answer->results[0].points, step.Expected(spec))
              << ToString(aggregator) << ' ' << downsample << (rate ? " rate" : "")
              << (type == MetricType::kCounter ? " of counters" : "");
        }
      }
    }
  }
}

// It is lost to the head, and reached over its parent all the same.
TEST(GoneNodes, ANodeThatIsBackWhileNodesAreAskedCountsOnce) {
  MeasuredStep step(MetricType::kCounter);
  step.AddNode("n1", 1, 9);
  const uint32_t lost = step.AddNode("n2", 1, 9);
  step.Lose(lost, 5);
  step.SetAnswers(lost, true);
  step.Begin(9);
  const QuerySpec spec = OfHosts(step.Sum(0, 10));
  const auto answer = step.Ask(spec);
  ASSERT_TRUE(answer.ok());
  ASSERT_THAT(answer->results, SizeIs(1));
  EXPECT_EQ(answer->results[0].points, step.Expected(spec));
  EXPECT_EQ(step.read(), 0);
  EXPECT_EQ(answer->nodes_answered, 2u);
}

// The node ends after it has been asked: its answer is in, and what it has stored is not added.
TEST(GoneNodes, ANodeThatEndsWhileNodesAreAskedCountsOnce) {
  MeasuredStep step(MetricType::kCounter);
  step.AddNode("n1", 1, 9);
  step.AddNode("n2", 1, 9);
  step.Begin(9);
  step.on_asked = [&] {
    step.record().Update([](JobDescription& job) { job.nodes[1].left = MeasuredStep::At(9) + 1; });
  };
  const QuerySpec spec = OfHosts(step.Sum(0, 10));
  const auto answer = step.Ask(spec);
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->results.at(0).points, step.Expected(spec));
}

TEST(GoneNodes, OfAHostWhoseDaemonWasStartedAnewTheSeriesGoOn) {
  for (const MetricType type : {MetricType::kGauge, MetricType::kCounter}) {
    MeasuredStep step(type);
    step.AddNode("n1", 1, 9);
    step.Lose(step.AddNode("n2", 1, 3), 4);
    step.AddNode("n2", 6, 9);
    step.Begin(9);
    for (QuerySpec spec : {OfHosts(step.Sum(0, 10)), ByHost(step.Sum(0, 10))}) {
      for (const Aggregator aggregator : {Aggregator::kSum, Aggregator::kCount}) {
        spec.aggregator = aggregator;
        const auto answer = step.Ask(spec);
        ASSERT_TRUE(answer.ok()) << answer.status().message();
        EXPECT_EQ(answer->results.front().points, step.Expected(spec)) << ToString(aggregator);
        EXPECT_EQ(answer->nodes_answered, 2u);
      }
    }
  }
}

// Long before the range: the newer daemon has counted more than the older one had, and may have
// counted nothing since.
TEST(GoneNodes, OfACounterThatBeganAnewBeforeTheRangeTheSumHasBoth) {
  for (const int last : {9000, 100}) {
    MeasuredStep step(MetricType::kCounter);
    step.AddNode("n1", 1, 9000);
    step.Lose(step.AddNode("n2", 1, 3), 4);
    step.AddNode("n2", 6, last);
    step.Begin(20);
    QuerySpec spec = step.Sum(8995, 8999);
    spec.filters = {{TagFilter::Type::kLiteralOr, "host", "n1|n2", false}};
    const auto answer = step.Ask(spec);
    ASSERT_TRUE(answer.ok()) << answer.status().message();
    ASSERT_THAT(answer->results, SizeIs(1)) << last;
    EXPECT_EQ(answer->results[0].points, step.Expected(spec)) << last;
  }
}

TEST(GoneNodes, WhoseSeriesCannotBeReadAreMissingAndTheAnswerSaysSo) {
  MeasuredStep step;
  step.AddNode("n1", 1, 9);
  step.End(step.AddNode("n2", 1, 4));
  step.CannotBeRead();
  step.Begin(9);
  const auto answer = step.Ask(ByHost(step.Sum(0, 10)));
  ASSERT_TRUE(answer.ok());
  EXPECT_THAT(answer->results, SizeIs(1));
  EXPECT_EQ(answer->nodes_answered, 1u);
  EXPECT_EQ(answer->nodes_expected, 2u);
}

// Who asks about other hosts, or other times, does not wait for the disk.
TEST(GoneNodes, AreReadOnlyWhereTheyAreAskedFor) {
  MeasuredStep step;
  step.AddNode("n1", 1, 9);
  step.End(step.AddNode("n2", 1, 4));
  step.Begin(9);
  QuerySpec spec = step.Sum(0, 10);
  spec.filters = {{TagFilter::Type::kLiteralOr, "host", "n1", true}};
  ASSERT_TRUE(step.Ask(spec).ok());
  EXPECT_EQ(step.read(), 0);
  ASSERT_TRUE(step.Ask(ByHost(step.Sum(9000, 9010))).ok());
  EXPECT_EQ(step.read(), 0) << "hours later";
  ASSERT_TRUE(step.Ask(ByHost(step.Sum(0, 10))).ok());
  EXPECT_EQ(step.read(), 1);
}

// Nodes of which an acting head has never heard, nor anybody else.
TEST(GoneNodes, ThatNeverCameAreNotAskedFor) {
  MeasuredStep step;
  step.AddNode("n1", 1, 9);
  step.Begin(9);
  step.record().Update([](JobDescription& job) {
    for (int i = 0; i < 2; ++i) job.nodes.emplace_back().lost = true;
  });
  const auto answer = step.Ask(ByHost(step.Sum(0, 10)));
  ASSERT_TRUE(answer.ok()) << answer.status().message();
  EXPECT_THAT(answer->results, SizeIs(1));
  EXPECT_EQ(step.read(), 0);
}

// Components of a het step on the same host.
TEST(GoneNodes, OfOneHostCountOnceForEachComponent) {
  MeasuredStep step;
  step.AddNode("n1", 1, 9);
  step.End(step.AddNode("n2", 1, 4));
  step.End(step.AddNode("n2", 1, 4));
  step.Begin(9);
  step.record().Update([](JobDescription& job) { job.nodes[2].job = "8"; });
  const auto answer = step.Ask(ByHost(step.Sum(0, 10)));
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->nodes_answered, 3u);
  EXPECT_EQ(answer->nodes_expected, 3u);
}

// A node ends, one comes, and the daemon of the one that has ended is started anew, each between
// two questions: what a question needs to know of all nodes is kept for the next one.
TEST(GoneNodes, AndOthersThatComeAreKnownToTheVeryNextQuestion) {
  for (const int others : {0, 300}) {
    MeasuredStep step(MetricType::kCounter);
    step.AddNode("n1", 1, 30);
    const uint32_t ends = step.AddNode("n2", 1, 9);
    for (int i = 0; i < others; ++i) step.AddNode("more" + std::to_string(i), 1, 30);
    step.Begin(9);
    int newest = 9;
    const auto expect_all = [&](uint32_t hosts, const std::string& when) {
      for (int i = 0; i < 3; ++i) step.AddRow(++newest);
      const auto all = static_cast<uint32_t>(others) + hosts;
      for (const QuerySpec& spec : {step.Sum(0, newest), OfHosts(step.Sum(0, newest))}) {
        const auto answer = step.Ask(spec);
        ASSERT_TRUE(answer.ok()) << answer.status().message();
        ASSERT_THAT(answer->results, SizeIs(1));
        EXPECT_EQ(answer->rows_only, "") << when;
        EXPECT_EQ(answer->results[0].points, step.Expected(spec)) << when;
        EXPECT_EQ(answer->nodes_answered, all) << when;
        EXPECT_EQ(answer->nodes_expected, all) << when;
      }
    };
    step.End(ends);
    step.Tell();
    expect_all(2, "when one has ended");
    step.AddNode("n3", newest + 1, 30);
    step.Tell();
    expect_all(3, "when another one has come");
    step.AddNode("n2", newest + 1, 30);
    step.Tell();
    expect_all(3, "when a daemon was started anew");
  }
}

}  // namespace
}  // namespace sonde::head::head_gone_nodes_test
