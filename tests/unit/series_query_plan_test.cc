// Which queries are answered by whom.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "series/query/plan.h"

namespace sonde::series_query_plan_test {
namespace {

using enum AnswerWay;

QuerySpec Spec(Aggregator aggregator, const char* downsample = "",
               std::vector<TagFilter> filters = {}) {
  QuerySpec spec;
  spec.metric = "m";
  spec.start = 0;
  spec.end = 3600 * kSecond;
  spec.aggregator = aggregator;
  if (*downsample != '\0') spec.downsample = *ParseDownsample(downsample);
  spec.filters = std::move(filters);
  return spec;
}

TagFilter By(const char* key) { return {TagFilter::Type::kWildcard, key, "*", true}; }
TagFilter Of(const char* key) { return {TagFilter::Type::kLiteralOr, key, "x", false}; }

struct Case {
  const char* name;
  QuerySpec spec;
  QueryScene scene;
  std::vector<AnswerWay> plan;
};

TEST(QueryPlan, SaysWhoAnswers) {
  const QueryScene head{.at_head = true, .period = kSecond};
  const QueryScene counter{.at_head = true, .period = kSecond, .is_count = true};
  const QueryScene small{.steps = 1, .heads = 0, .nodes = 64, .period = kSecond};
  const QueryScene large{.steps = 1, .heads = 0, .nodes = 65, .period = kSecond};
  const QueryScene large_running{.steps = 1, .heads = 1, .nodes = 65, .period = kSecond};
  const QueryScene finished{.steps = 3, .heads = 0};
  const QueryScene mixed{.steps = 3, .heads = 2};
  const Case cases[] = {
      // At a head: what its own rows answer exactly, else the nodes.
      {"sum at head", Spec(Aggregator::kSum), head, {kReduced}},
      {"sum of means at head", Spec(Aggregator::kSum, "10s-avg"), head, {kReduced}},
      {"by host at head", Spec(Aggregator::kSum, "", {By("host")}), head, {kParts}},
      {"of a task at head", Spec(Aggregator::kSum, "", {Of("task")}), head, {kParts}},
      {"each at head", Spec(Aggregator::kNone), head, {kParts}},
      {"sum of maxima at head", Spec(Aggregator::kSum, "10s-max"), head, {kParts}},
      {"sum of a counter's maxima at head", Spec(Aggregator::kSum, "10s-max"), counter, {kReduced}},
      {"median at head", Spec(Aggregator::kP50), head, {kSpread, kParts}},
      {"median of longer buckets at head", Spec(Aggregator::kP50, "10s-avg"), head, {kParts}},
      {"median by host at head", Spec(Aggregator::kP50, "", {By("host")}), head, {kParts}},
      // Of one step elsewhere: its head, if there is one; of many nodes not every series is read.
      {"small step", Spec(Aggregator::kSum), small, {kSeries}},
      {"median of a small step", Spec(Aggregator::kP50), small, {kSeries}},
      {"large step", Spec(Aggregator::kSum), large, {kReduced}},
      {"large step by host", Spec(Aggregator::kSum, "", {By("host")}), large, {kSeries}},
      {"median of a large step", Spec(Aggregator::kP50), large, {kSpread, kSeries}},
      {"large step that runs", Spec(Aggregator::kSum), large_running, {kHead, kReduced}},
      {"median of one that runs", Spec(Aggregator::kP50), large_running, {kHead, kSpread, kSeries}},
      // Of several: each for itself, or parts of those that run.
      {"by job", Spec(Aggregator::kSum, "", {By("job")}), mixed, {kEachHead}},
      {"by job, finished", Spec(Aggregator::kP50, "", {By("job")}), finished, {kEachHead}},
      {"sum of several", Spec(Aggregator::kSum), mixed, {kParts, kSeries}},
      {"sum of finished ones", Spec(Aggregator::kSum), finished, {kSeries}},
      {"by host of several", Spec(Aggregator::kSum, "", {By("host")}), mixed, {kSeries}},
      {"median of several", Spec(Aggregator::kP50), mixed, {kParts, kSeries}},
      {"each of several", Spec(Aggregator::kNone), mixed, {kEachHead}},
      {"no step", Spec(Aggregator::kSum), {.steps = 0}, {kSeries}},
  };
  for (const Case& one : cases) {
    EXPECT_EQ(PlanQuery(one.spec, one.scene), one.plan) << one.name;
  }
  QuerySpec fine = Spec(Aggregator::kSum);
  fine.start = 1;
  EXPECT_EQ(PlanQuery(fine, mixed), (std::vector{kSeries})) << "heads are asked in milliseconds";
}

TEST(QueryPlan, ARunningStepsPartIsOfItsNodes) {
  EXPECT_EQ(PlanPart(Spec(Aggregator::kSum), false), kParts);
  EXPECT_EQ(PlanPart(Spec(Aggregator::kSum), true), kReduced) << "with nodes that have ended";
  EXPECT_EQ(PlanPart(Spec(Aggregator::kMax), true), kParts);
  EXPECT_EQ(PlanPart(Spec(Aggregator::kSum, "", {Of("host")}), true), kParts);
}

}  // namespace
}  // namespace sonde::series_query_plan_test
