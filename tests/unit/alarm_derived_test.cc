// What a node derives for alarms from its own samples.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>

#include "series/alarm/derived_series.h"
#include "series/alarm/evaluator.h"

namespace sonde::node {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

Series Make(const std::string& name, Tags tags, MetricType type = MetricType::kGauge,
            const std::string& unit = "1") {
  Series series;
  series.metric.name = name;
  series.metric.type = type;
  series.metric.unit = unit;
  series.tags = std::move(tags);
  return series;
}

class DerivedSeriesTest : public testing::Test {
 protected:
  void Want(std::vector<alarms::Derived> wanted, std::vector<Series> series) {
    derived_.SetWanted(std::move(wanted));
    Schemas(std::move(series));
  }
  void Schemas(std::vector<Series> series) {
    schema_ = Schema::Make(std::move(series));
    const Schema::Ptr groups[] = {nullptr, schema_};
    derived_.SetSchemas(groups);
  }
  std::vector<double> Sample(std::vector<double> row, Nanos after = kSecond) {
    time_ += after;
    const std::span<const double> rows[] = {{}, row};
    derived_.Update(time_, rows);
    return {derived_.row().begin(), derived_.row().end()};
  }
  std::string Name(size_t i) {
    const Series& series = (*derived_.schema())[i];
    return SeriesName(series.metric.name, series.tags);
  }

  alarms::DerivedSeries derived_;
  Schema::Ptr schema_;
  Nanos time_ = 5 * kSecond;
};

TEST_F(DerivedSeriesTest, MakesNothingUnlessSomethingIsWanted) {
  Want({}, {Make("x", {})});
  EXPECT_EQ(derived_.schema(), nullptr);
  EXPECT_TRUE(Sample({1}).empty());
}

TEST_F(DerivedSeriesTest, RatesOfTasks) {
  Want({{"cpu", {}, "", false, true}},
       {Make("cpu", {{"task", "3"}}, MetricType::kCounter, "seconds"),
        Make("cpu", {{"task", "4"}}, MetricType::kCounter, "seconds")});
  ASSERT_EQ(derived_.schema()->size(), 2u);
  EXPECT_EQ(Name(1), "alarm:rate:cpu{task=\"4\"}");
  EXPECT_EQ((*derived_.schema())[0].metric.unit, "seconds/s");
  EXPECT_TRUE(std::isnan(Sample({10, 20})[0]));
  EXPECT_EQ(Sample({12, 20}), (std::vector<double>{2, 0}));
  EXPECT_EQ(Sample({13, 21}, 2 * kSecond), (std::vector<double>{0.5, 0.5}));
}

TEST_F(DerivedSeriesTest, ResetsAndMissingValues) {
  Want({{"c", {}, "", false, true}}, {Make("c", {}, MetricType::kCounter)});
  Sample({10});
  EXPECT_TRUE(std::isnan(Sample({2})[0])) << "it began anew";
  EXPECT_EQ(Sample({5})[0], 3);
  EXPECT_TRUE(std::isnan(Sample({kNone})[0]));
  EXPECT_EQ(Sample({9})[0], 2) << "over two seconds";
}

TEST_F(DerivedSeriesTest, TasksThatEndedHaveNoRate) {
  Want({{"cpu", {}, "", false, true}, {"cpu", {}, "", true, true}},
       {Make("cpu", {{"task", "0"}}, MetricType::kCounter), Make("task_processes", {{"task", "0"}}),
        Make("cpu", {{"task", "1"}}, MetricType::kCounter),
        Make("task_processes", {{"task", "1"}})});
  ASSERT_EQ(derived_.schema()->size(), 3u);
  EXPECT_EQ(Name(2), "alarm:node:rate:cpu");
  Sample({0, 1, 0, 1});
  EXPECT_EQ(Sample({1, 1, 2, 1}), (std::vector<double>{1, 2, 3}));
  const std::vector<double> one = Sample({2, 1, 2, kNone});
  EXPECT_EQ(one[0], 1);
  EXPECT_TRUE(std::isnan(one[1]));
  EXPECT_EQ(one[2], 1);
  EXPECT_TRUE(std::isnan(Sample({2, kNone, 2, kNone})[2])) << "of none there is no sum";
}

TEST_F(DerivedSeriesTest, RatiosOfSeriesWithTheSameTags) {
  Want({{"avail", {}, "size", false, false}},
       {Make("avail", {{"mountpoint", "/"}}, MetricType::kGauge, "bytes"),
        Make("avail", {{"mountpoint", "/tmp"}}, MetricType::kGauge, "bytes"),
        Make("avail", {{"mountpoint", "/odd"}}, MetricType::kGauge, "bytes"),
        Make("size", {{"mountpoint", "/tmp"}}, MetricType::kGauge, "bytes"),
        Make("size", {{"mountpoint", "/"}}, MetricType::kGauge, "bytes")});
  ASSERT_EQ(derived_.schema()->size(), 2u);
  EXPECT_EQ((*derived_.schema())[0].metric.unit, "ratio");
  EXPECT_EQ(Sample({1, 3, 9, 4, 10}), (std::vector<double>{0.1, 0.75}));
  EXPECT_TRUE(std::isnan(Sample({1, 3, 9, 0, 10})[1])) << "of nothing there is no share";
}

TEST_F(DerivedSeriesTest, OnlyWithTheTagsThatAreWanted) {
  Want({{"cpu", {{"mode", "idle"}}, "", false, true}},
       {Make("cpu", {{"mode", "user"}}, MetricType::kCounter),
        Make("cpu", {{"mode", "idle"}}, MetricType::kCounter)});
  ASSERT_EQ(derived_.schema()->size(), 1u);
  EXPECT_EQ(Name(0), "alarm:rate:cpu{mode=\"idle\"}");
}

TEST_F(DerivedSeriesTest, WhatIsForThisNodeAloneHasItsName) {
  Want({{"task_rss", {{"host", "n3"}}, "", true, false}},
       {Make("task_rss", {{"task", "0"}}), Make("task_rss", {{"task", "1"}})});
  ASSERT_EQ(derived_.schema()->size(), 1u);
  EXPECT_EQ(Name(0), "alarm:node:task_rss{host=\"n3\"}");
  EXPECT_EQ(Sample({3, 4})[0], 7);
}

TEST_F(DerivedSeriesTest, ANewSchemaInterruptsNoRate) {
  Want({{"cpu", {}, "", false, true}}, {Make("cpu", {{"task", "0"}}, MetricType::kCounter)});
  Sample({1});
  Schemas({Make("other", {}), Make("cpu", {{"task", "0"}}, MetricType::kCounter),
           Make("cpu", {{"task", "1"}}, MetricType::kCounter)});
  const std::vector<double> row = Sample({7, 4, 5});
  EXPECT_EQ(row[0], 3);
  EXPECT_TRUE(std::isnan(row[1]));
}

TEST_F(DerivedSeriesTest, WishesCountFromTheNextSchemasOn) {
  Want({{"x", {}, "", false, true}}, {Make("x", {})});
  derived_.SetWanted({});
  EXPECT_NE(derived_.schema(), nullptr);
  Schemas({Make("x", {})});
  EXPECT_EQ(derived_.schema(), nullptr);
}

TEST_F(DerivedSeriesTest, HowLongAValueHasCompared) {
  using alarms::Test;
  Want({{"x", {}, "", false, false, Test::kGreater, 5}},
       {Make("x", {}, MetricType::kGauge, "bytes")});
  EXPECT_EQ((*derived_.schema())[0].metric.unit, "seconds");
  EXPECT_EQ(Sample({6})[0], 0);
  EXPECT_EQ(Sample({9})[0], 1);
  EXPECT_TRUE(std::isnan(Sample({kNone})[0])) << "missing for a moment";
  EXPECT_EQ(Sample({9}, kSecond / 2)[0], 2.5);
  EXPECT_EQ(Sample({5})[0], 0);
  EXPECT_EQ(Sample({6})[0], 0);
  // A new schema does not forget.
  Schemas({Make("other", {}), Make("x", {})});
  EXPECT_EQ(Sample({0, 6})[0], 1);
  // But half a minute without a value does.
  for (int i = 0; i < 31; ++i) Sample({0, kNone});
  EXPECT_EQ(Sample({0, 6})[0], 0);
  // Where samples are rare, one that is missing is not long.
  EXPECT_EQ(Sample({0, 6}, 60 * kSecond)[0], 60);
  Sample({0, kNone}, 60 * kSecond);
  EXPECT_EQ(Sample({0, 6}, 60 * kSecond)[0], 180);
}

// Nodes and the head together: raised is what one node by itself has had for so long.
TEST(DerivedHeld, AnyOfManyNodesIsOneAndTheSame) {
  std::mt19937 random(7);
  constexpr size_t kNodes = 4;
  constexpr Nanos kHold = 3 * kSecond;
  int raised = 0;
  for (int round = 0; round < 200; ++round) {
    alarms::Evaluator evaluator(kSecond);
    ASSERT_TRUE(evaluator.Add(*alarms::ParseRule("r", "x any > 5 for 3s")).ok());
    const Schema::Ptr schema = Schema::Make({Make("x", {})});
    std::vector<alarms::DerivedSeries> nodes(kNodes);
    for (alarms::DerivedSeries& node : nodes) {
      node.SetWanted(evaluator.Needs());
      node.SetSchemas(std::span(&schema, 1));
    }
    const std::vector<Series> series = {(*schema)[0], (*nodes[0].schema())[0]};
    std::vector<double> values(kNodes, 0);
    std::vector<Nanos> since(kNodes, 0);
    for (Nanos time = 1000 * kSecond; time < 1100 * kSecond; time += kSecond) {
      std::vector<Reduced> row(2);
      std::set<uint32_t> held;
      for (uint32_t n = 0; n < kNodes; ++n) {
        if (random() % 2 == 0) values[n] = static_cast<double>(random() % 9);
        if (!(values[n] > 5)) since[n] = 0;
        if (values[n] > 5 && since[n] == 0) since[n] = time;
        if (since[n] != 0 && time - since[n] >= kHold) held.insert(n);
        const std::span<const double> rows[] = {std::span(&values[n], 1)};
        nodes[n].Update(time, rows);
        row[0].Add(values[n], {n, Owner::kNobody});
        row[1].Add(nodes[n].row()[0], {n, Owner::kNobody});
      }
      std::vector<alarms::Event> events;
      evaluator.Evaluate(series, {time, &row, true}, events);
      ASSERT_EQ(events.size(), held.empty() ? 0u : 1u) << "in round " << round;
      if (events.empty()) continue;
      ASSERT_EQ(held.count(events[0].owner.node), 1u);
      ++raised;
      break;
    }
  }
  EXPECT_GT(raised, 100);
}

}  // namespace
}  // namespace sonde::node
