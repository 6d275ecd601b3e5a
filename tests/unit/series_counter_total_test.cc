// What a counter of the whole step comes to, row by row: it never falls, and a question about the
// rows is told the same as who goes through them (series/query/counter_total.h).
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "series/query/counter_total.h"
#include "series/query/query.h"

namespace sonde::series_counter_total_test {
namespace {

using Rows = std::vector<std::vector<double>>;  // the values of the nodes that are in each

Reduced Reduce(const std::vector<double>& values) {
  Reduced row;
  for (const double value : values) row.Add(value, {0, Owner::kNobody});
  return row;
}

std::vector<double> Totals(const Rows& rows, const std::vector<PresenceRun>& runs = {}) {
  CounterTotal total;
  RowNodes nodes;
  std::vector<double> totals;
  for (const auto& row : rows) {
    const auto time = static_cast<Nanos>(totals.size() + 1) * kSecond;
    nodes.Changed(runs, time);
    if (row.empty()) {
      totals.push_back(totals.empty() ? 0 : totals.back());
    } else {
      totals.push_back(total.Add(Reduce(row), nodes.changes()));
    }
  }
  return totals;
}

// The points of an answer from the rows.
std::vector<double> Ask(const Rows& rows, Aggregator aggregator,
                        const std::vector<PresenceRun>& runs = {}) {
  std::vector<SeriesData> columns;
  for (const std::string_view stat : kStatNames) {
    SeriesData& data = columns.emplace_back();
    data.series.metric.name = "work_total";
    data.series.metric.type = MetricType::kCounter;
    data.series.tags = Tags{{"stat", std::string(stat)}};
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    double stats[kStatColumns];
    ToColumns(Reduce(rows[i]), stats);
    for (size_t k = 0; k < kStatColumns; ++k) {
      columns[k].points.push_back({static_cast<Nanos>(i + 1) * kSecond, stats[k]});
    }
  }
  QuerySpec spec;
  spec.metric = "work_total";
  spec.aggregator = aggregator;
  spec.end = 1000 * kSecond;
  const auto results = EvaluateReduced(spec, columns, runs);
  EXPECT_TRUE(results.ok() && results->size() == 1);
  std::vector<double> answer;
  if (!results.ok() || results->empty()) return answer;
  for (const Point& p : results->front().points) answer.push_back(p.value);
  return answer;
}

TEST(CounterTotal, ANodeThatComesWhileAnotherIsMissingTakesNothingAway) {
  const Rows rows = {{10, 100}, {20}, {40}, {50, 0}, {60, 140, 5}};
  const std::vector<double> totals = {110, 110, 130, 130, 205};
  EXPECT_EQ(Totals(rows), totals);
  EXPECT_EQ(Ask(rows, Aggregator::kSum), totals);
}

// They cannot be told apart; what was told of them is not taken back, and is not added to.
TEST(CounterTotal, TwoThatAreMissingInTurnAddNothingWhenBothAreBack) {
  const Rows rows = {{100, 10}, {20}, {105}, {110, 30}, {120, 40}, {160, 60}};
  const std::vector<double> totals = {110, 110, 195, 195, 195, 220};
  EXPECT_EQ(Totals(rows), totals);
  EXPECT_EQ(Ask(rows, Aggregator::kSum), totals);
}

// The same where it is known which rows are of other nodes: never too much, and right in the end.
TEST(CounterTotal, WhereItIsKnownWhoIsThereTheTotalIsNeverTooLarge) {
  const Rows rows = {{100, 10}, {20}, {105}, {110}, {120, 40}, {160, 60}};
  const std::vector<double> totals = {110, 110, 110, 115, 160, 220};
  const std::vector<PresenceRun> runs = {{1 * kSecond, 2, 2, 0, 0},
                                         {2 * kSecond, 1, 0, 1, 0},
                                         {3 * kSecond, 1, 1, 1, kSecond},
                                         {5 * kSecond, 2, 1, 0, 2 * kSecond}};
  EXPECT_EQ(Totals(rows, runs), totals);
  EXPECT_EQ(Ask(rows, Aggregator::kSum, runs), totals);
}

TEST(CounterTotal, OfRowsOfDifferentNodesEachMayBeOfOthers) {
  const std::vector<PresenceRun> runs = {{1 * kSecond, 2, 2, 0, 0},
                                         {2 * kSecond, 1, 1, 3, 2 * kSecond}};
  EXPECT_EQ(Totals({{100, 10}, {20}, {105}, {25}, {120, 40}}, runs),
            (std::vector<double>{110, 110, 110, 110, 160}));
}

// As a counter that is read every 10 s only: the first row of other nodes has no value of it.
TEST(CounterTotal, WhereNodesChangedWithoutAValueTheNextOneCountsAsOfOthers) {
  const std::vector<PresenceRun> runs = {
      {1 * kSecond, 2, 2, 0, 0}, {2 * kSecond, 1, 0, 1, 0}, {3 * kSecond, 1, 1, 1, kSecond}};
  EXPECT_EQ(Totals({{100, 10}, {20}, {}, {105}, {106}}, runs),
            (std::vector<double>{110, 110, 110, 110, 111}));
}

// In doubles a + ((a + b) - a) may be more than a + b.
TEST(CounterTotal, RoundingTakesNothingAway) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> any(0, 1);
  for (int i = 0; i < 1000; ++i) {
    const double a = any(random);
    const double b = any(random);
    const double more = a + any(random);
    const std::vector<double> totals = Totals({{a, b}, {a}, {more}, {more, b}});
    for (size_t row = 1; row < totals.size(); ++row) ASSERT_GE(totals[row], totals[row - 1]) << i;
  }
}

// Nodes that come, go and come back as chance will have it.
TEST(CounterTotal, NeverFallsAndIsTheSameForWhoAsks) {
  std::mt19937_64 random(2);
  for (int step = 0; step < 500; ++step) {
    std::vector<double> counted(1 + random() % 5);
    Rows rows;
    for (size_t row = 0; row < 30; ++row) {
      std::vector<double>& there = rows.emplace_back();
      for (double& node : counted) {
        node += static_cast<double>(random() % 1000) / 7;
        if (row == 29 || random() % 3 != 0) there.push_back(node);
      }
      if (there.empty()) rows.pop_back();
      if (random() % 10 == 0) counted.push_back(0);
    }
    const std::vector<double> totals = Totals(rows);
    for (size_t i = 1; i < totals.size(); ++i) {
      ASSERT_GE(totals[i], totals[i - 1]) << "step " << step << " row " << i;
    }
    ASSERT_GE(totals.back(), Reduce(rows.back()).sum) << "step " << step;
    ASSERT_EQ(Ask(rows, Aggregator::kSum), totals) << "step " << step;
    for (const Aggregator aggregator : {Aggregator::kMax, Aggregator::kCount}) {
      const std::vector<double> answer = Ask(rows, aggregator);
      for (size_t i = 1; i < answer.size(); ++i) ASSERT_GE(answer[i], answer[i - 1]);
    }
  }
}

}  // namespace
}  // namespace sonde::series_counter_total_test
