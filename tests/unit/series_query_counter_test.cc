// Sums of counters: what a node had counted stays in them, whatever becomes of it.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "series/query/part.h"
#include "series/query/query.h"
#include "series/store/reduced.h"

namespace sonde::series_query_counter_test {
namespace {

using Times = std::vector<std::pair<double, double>>;

Nanos At(double second) { return static_cast<Nanos>(std::llround(second * 1000)) * kMillisecond; }

SeriesData Counter(const std::string& host, const Times& points) {
  SeriesData data;
  data.series.metric.name = "work_total";
  data.series.metric.type = MetricType::kCounter;
  data.series.tags.Set("host", host);
  for (const auto& [second, value] : points) data.points.push_back({At(second), value});
  return data;
}

// One of four nodes that end one after the other, between two ticks: 40 a second each.
std::vector<SeriesData> StepThatEnds() {
  return {Counter("n1", {{1, 40}, {2, 80}, {3, 120}, {3.1, 124}}),
          Counter("n2", {{1, 40}, {2, 80}, {3, 120}, {3.2, 128}}),
          Counter("n3", {{1, 40}, {2, 80}, {3, 120}, {3.3, 132}}),
          Counter("n4", {{1, 40}, {2, 80}, {3, 120}, {3.4, 136}})};
}

QuerySpec Ask(Aggregator aggregator, double start = 0, double end = 10) {
  QuerySpec spec;
  spec.metric = "work_total";
  spec.aggregator = aggregator;
  spec.start = At(start);
  spec.end = At(end);
  return spec;
}

QuerySpec Ask(Aggregator aggregator, std::string_view downsample, bool rate) {
  QuerySpec spec = Ask(aggregator);
  spec.downsample = *ParseDownsample(downsample);
  spec.rate = rate;
  return spec;
}

std::string Text(const std::vector<QueryResult>& results) {
  std::string text;
  for (const QueryResult& result : results) {
    if (!text.empty()) text += " | ";
    for (const Point& p : result.points) {
      char item[64];
      const char* space = text.empty() || text.back() == ' ' ? "" : " ";
      std::snprintf(item, sizeof item, "%s%g:%g", space, static_cast<double>(p.time) / kSecond,
                    p.value);
      text += item;
    }
  }
  return text;
}

std::string Answer(const QuerySpec& spec, const std::vector<SeriesData>& series) {
  const auto results = Evaluate(spec, series);
  return results.ok() ? Text(*results) : std::string(results.status().message());
}

// A bucket's mean, its first or its smallest value is not what the counter had reached in it.
TEST(CounterQuery, AfterItsLastBucketACounterKeepsItsLastValue) {
  const std::vector<SeriesData> series = {
      Counter("n1", {{1, 10}, {2, 20}, {3, 30}}),
      Counter("n2", {{1, 0}, {2, 0}, {3, 0}, {4, 0}, {5, 0}, {6, 0}, {7, 0}})};
  EXPECT_EQ(Answer(Ask(Aggregator::kSum, "2s-avg", false), series), "0:10 2:25 4:30 6:30");
  EXPECT_EQ(Answer(Ask(Aggregator::kSum, "2s-first", false), series), "0:10 2:20 4:30 6:30");
  EXPECT_EQ(Answer(Ask(Aggregator::kMax, "2s-min", false), series), "0:10 2:20 4:30 6:30");
  EXPECT_EQ(Answer(Ask(Aggregator::kSum, "2s-last", false), series), "0:10 2:30 4:30 6:30");
}

TEST(CounterQuery, ASumDoesNotFallWhenNodesEnd) {
  const std::string sum = "1:160 2:320 3:480 3.1:496 3.2:508 3.3:516 3.4:520";
  EXPECT_EQ(Answer(Ask(Aggregator::kSum), StepThatEnds()), sum);
  // They have no value there, and that is not none.
  const std::string steps = "1:160 2:320 3:480 3.1:484 3.2:492 3.3:504 3.4:520";
  EXPECT_EQ(Answer(Ask(Aggregator::kZimsum), StepThatEnds()), steps);
  EXPECT_EQ(Answer(Ask(Aggregator::kPfsum), StepThatEnds()), steps);
}

TEST(CounterQuery, WhatHasEndedStaysInTheOtherAggregatesToo) {
  const std::vector<SeriesData> step = {Counter("n1", {{1, 30}, {1.5, 40}}),
                                        Counter("n2", {{1, 10}, {2, 20}})};
  EXPECT_EQ(Answer(Ask(Aggregator::kAvg), step), "1:20 1.5:27.5 2:30");
  EXPECT_EQ(Answer(Ask(Aggregator::kMax), step), "1:30 1.5:40 2:40");
  EXPECT_EQ(Answer(Ask(Aggregator::kMin), step), "1:10 1.5:15 2:20");
  EXPECT_EQ(Answer(Ask(Aggregator::kCount), step), "1:2 1.5:2 2:2");
}

TEST(CounterQuery, GaugesEndWithTheirNodes) {
  std::vector<SeriesData> step = StepThatEnds();
  for (SeriesData& data : step) data.series.metric.type = MetricType::kGauge;
  EXPECT_EQ(Answer(Ask(Aggregator::kSum), step),
            "1:160 2:320 3:480 3.1:496 3.2:384 3.3:264 3.4:136");
}

TEST(CounterQuery, WhatBeginsAnewGoesOnWhereItWas) {
  const std::vector<SeriesData> step = {Counter("n1", {{1, 40}, {2, 80}, {4, 5}, {5, 45}}),
                                        Counter("n2", {{1, 1}, {2, 2}, {3, 3}, {4, 4}, {5, 5}})};
  EXPECT_EQ(Answer(Ask(Aggregator::kSum), step), "1:41 2:82 3:85.5 4:89 5:130");
  EXPECT_EQ(Answer(Ask(Aggregator::kNone), step), "1:40 2:80 4:5 5:45 | 1:1 2:2 3:3 4:4 5:5")
      << "a series by itself is as it was measured";
  QuerySpec rate = Ask(Aggregator::kNone);
  rate.rate = true;
  EXPECT_EQ(Answer(rate, step), "2:40 4:2.5 5:40 | 2:1 3:1 4:1 5:1");
}

TEST(CounterQuery, ABucketWithALastPointBesideTheTicksHasNoGreaterRate) {
  const SeriesData series = Counter("n1", {{1, 40}, {2, 80}, {3, 120}, {3.9, 156}});
  for (const char* by : {"1s-avg", "1s-last", "1s-max", "1s-min", "1s-first"}) {
    EXPECT_EQ(Answer(Ask(Aggregator::kSum, by, true), {series}), "2:40 3:40") << by;
  }
}

TEST(CounterQuery, EmptyBucketsAreFilledInTheSumAndNotInWhatIsAdded) {
  const std::vector<SeriesData> step = {Counter("n1", {{1, 10}, {2, 20}}),
                                        Counter("n2", {{2, 5}, {4, 7}})};
  EXPECT_EQ(Answer(Ask(Aggregator::kSum, "1s-last", false), step), "1:10 2:25 4:27");
  EXPECT_EQ(Answer(Ask(Aggregator::kSum, "1s-last-nan", false), step),
            "0:nan 1:10 2:25 3:nan 4:27 5:nan 6:nan 7:nan 8:nan 9:nan 10:nan");
  EXPECT_EQ(Answer(Ask(Aggregator::kSum, "1s-last-zero", false), step),
            "0:0 1:10 2:25 3:0 4:27 5:0 6:0 7:0 8:0 9:0 10:0");
}

TEST(CounterQuery, WhatEndedBeforeTheRangeCountsIfItIsGiven) {
  constexpr double kHour = 3600;
  const std::vector<SeriesData> step = {Counter("n1", {{kHour - 2, 60}, {kHour - 1, 70}}),
                                        Counter("n2", {{kHour + 1, 10}, {kHour + 2, 20}})};
  EXPECT_EQ(Answer(Ask(Aggregator::kSum, kHour, kHour + 10), step), "3601:80 3602:90");
}

TEST(CounterQuery, WhatWasCountedBeforeTheRangeIsAddedUpAndLeadsIntoIt) {
  constexpr double kHour = 3600;
  const std::vector<SeriesData> step = {
      Counter("n1", {{10, 100}, {20, 5}, {kHour - 4, 40}, {kHour + 4, 48}}),
      Counter("n2", {{kHour + 1, 1}, {kHour + 2, 2}, {kHour + 6, 6}})};
  EXPECT_EQ(Answer(Ask(Aggregator::kSum, kHour, kHour + 10), step),
            "3601:146 3602:148 3604:152 3606:154");
  QuerySpec spec = Ask(Aggregator::kSum, kHour, kHour + 10);
  spec.downsample = *ParseDownsample("2s-last");
  EXPECT_EQ(Answer(spec, step), "3600:145 3602:148 3604:152 3606:154");
  // How many points a bucket has is nothing that was counted.
  spec.downsample = *ParseDownsample("2s-count");
  EXPECT_EQ(Answer(spec, step), "3600:1 3602:1 3604:2 3606:2");
}

// As nodes answer: each of its own series, at the ticks.
TEST(CounterQuery, PartsOfNodesComeToTheSame) {
  const std::vector<SeriesData> step = StepThatEnds();
  for (const Aggregator aggregator : {Aggregator::kSum, Aggregator::kAvg, Aggregator::kCount}) {
    for (const char* downsample : {"", "1s-last", "1s-avg-nan"}) {
      QuerySpec spec = Ask(aggregator);
      if (*downsample != '\0') spec.downsample = *ParseDownsample(downsample);
      QueryGrid grid{kSecond, {At(3.1), At(3.2), At(3.3), At(3.4)}};
      QueryPart all = EmptyPart(spec);
      for (const SeriesData& data : step) {
        const auto part = EvaluatePart(spec, {data}, &grid);
        ASSERT_TRUE(part.ok());
        const auto sent = DecodePart(spec, *EncodePart(*part));
        ASSERT_TRUE(sent.ok()) << sent.status().message();
        ASSERT_TRUE(MergePart(spec, grid, *sent, all).ok());
      }
      EXPECT_EQ(Text(FinishPart(spec, all)), Answer(spec, step)) << downsample;
    }
  }
}

// --- Reduced rows ---

struct Row {
  double second;
  std::vector<double> values;  // of the nodes that are in it
};

std::vector<SeriesData> Reduce(const std::vector<Row>& rows) {
  std::vector<SeriesData> columns;
  for (const std::string_view stat : kStatNames) {
    SeriesData& data = columns.emplace_back(Counter("", {}));
    data.series.tags = Tags{{"stat", std::string(stat)}};
  }
  for (const Row& row : rows) {
    Reduced value;
    for (const double v : row.values) value.Add(v, {0, Owner::kNobody});
    double stats[kStatColumns];
    ToColumns(value, stats);
    for (size_t i = 0; i < kStatColumns; ++i)
      columns[i].points.push_back({At(row.second), stats[i]});
  }
  return columns;
}

std::string AnswerReduced(const QuerySpec& spec, const std::vector<Row>& rows) {
  const auto results = EvaluateReduced(spec, Reduce(rows));
  return results.ok() ? Text(*results) : std::string(results.status().message());
}

// As profiles have them that were written before rows kept to whole ones.
TEST(CounterQuery, ARowOfFewerNodesDoesNotFall) {
  const std::vector<Row> rows = {{1, {10, 100}}, {2, {20, 110}}, {3, {30}}, {4, {40, 130}}};
  EXPECT_EQ(AnswerReduced(Ask(Aggregator::kSum), rows), "1:110 2:130 3:130 4:170");
  EXPECT_EQ(AnswerReduced(Ask(Aggregator::kCount), rows), "1:2 2:2 3:2 4:2");
  EXPECT_EQ(AnswerReduced(Ask(Aggregator::kMax), rows), "1:100 2:110 3:110 4:130");
  EXPECT_EQ(AnswerReduced(Ask(Aggregator::kMin), rows), "1:10 2:20 3:20 4:40");
  QuerySpec rate = Ask(Aggregator::kSum);
  rate.rate = true;
  EXPECT_EQ(AnswerReduced(rate, rows), "2:20 3:0 4:40");
}

TEST(CounterQuery, TheLastOfABucketIsTheSumOfTheLast) {
  const std::vector<Row> rows = {{1, {10, 100}}, {1.5, {20, 110}}, {2, {30, 120}}};
  for (const char* by : {"1s-last", "1s-max"}) {
    QuerySpec spec = Ask(Aggregator::kSum, by, false);
    ASSERT_TRUE(AnswersFromReduced(spec, /*counts=*/true)) << by;
    EXPECT_EQ(AnswerReduced(spec, rows), "1:130 2:150");
  }
  EXPECT_FALSE(AnswersFromReduced(Ask(Aggregator::kSum, "1s-max", false)));
}

}  // namespace
}  // namespace sonde::series_query_counter_test
