#include <gtest/gtest.h>

#include <cmath>

#include "profiles/model/footprint.h"
#include "tests/unit/profiles_fixture.h"

namespace sonde::profiles_footprint_test {
namespace {

Reduced Of(std::initializer_list<std::pair<uint32_t, double>> values) {
  Reduced reduced;
  for (const auto& [node, value] : values) reduced.Add(value, {node, Owner::kNobody});
  return reduced;
}

class FootprintTest : public testing::Test {
 protected:
  void Use(MetricType type, Reduction reduction = Reduction::kSum) {
    builder_.SetSeries({TestSeries("m", type, {}, reduction)});
  }
  void Row(std::initializer_list<std::pair<uint32_t, double>> values, bool others = false) {
    const Reduced row[] = {Of(values)};
    builder_.AddRow(kTestStart + ++tick_ * kSecond, row, {}, others);
  }
  // The row of `tick` becomes `after`.
  void Amend(int tick, std::initializer_list<std::pair<uint32_t, double>> before,
             std::initializer_list<std::pair<uint32_t, double>> after) {
    const Reduced was[] = {Of(before)};
    const Reduced is[] = {Of(after)};
    builder_.AmendRow(kTestStart + tick * kSecond, {was}, {is});
  }
  FootprintEntry Entry() const {
    const auto entries = builder_.Entries();
    EXPECT_EQ(entries.size(), 1u);
    return entries.empty() ? FootprintEntry() : entries[0];
  }

  FootprintBuilder builder_{kTestStart};
  int tick_ = 0;
};

TEST_F(FootprintTest, OfAGaugeTheStepsNumberAndSingleExtremes) {
  Use(MetricType::kGauge);
  Row({{0, 1}, {1, 5}});
  Row({{0, 2}, {1, 2}});
  const FootprintEntry e = Entry();
  EXPECT_EQ(e.ticks, 2u);
  EXPECT_EQ(e.last, 4);
  EXPECT_EQ(e.mean, 5);
  EXPECT_EQ(e.min, 1);
  EXPECT_EQ(e.min_owner.node, 0u);
  EXPECT_EQ(e.max, 5);
  EXPECT_EQ(e.max_owner.node, 1u);
}

TEST_F(FootprintTest, ReducesAsTheMetricDeclares) {
  Use(MetricType::kGauge, Reduction::kMean);
  Row({{0, 1}, {1, 5}});
  EXPECT_EQ(Entry().last, 3);
}

TEST_F(FootprintTest, OfACounterTotalRateAndFinalExtremes) {
  Use(MetricType::kCounter);
  Row({{0, 1}, {1, 3}});
  Row({{0, 2}, {1, 6}});
  const FootprintEntry e = Entry();
  EXPECT_EQ(e.last, 8);
  EXPECT_EQ(e.mean, 4);  // 8 in two seconds
  EXPECT_EQ(e.min, 2);
  EXPECT_EQ(e.min_owner.node, 0u);
  EXPECT_EQ(e.max, 6);
}

// However late the parts, the entry is that of complete rows.
TEST_F(FootprintTest, APartThatComesLateCountsAsIfInTime) {
  for (const auto& [type, last] : {std::pair(MetricType::kGauge, 9.0), {MetricType::kCounter, 9}}) {
    builder_ = FootprintBuilder(kTestStart);
    tick_ = 0;
    Use(type);
    Row({{0, 1}});
    Row({{0, 2}});
    Amend(1, {{0, 1}}, {{0, 1}, {1, 5}});
    Amend(2, {{0, 2}}, {{0, 2}, {1, 7}});
    FootprintEntry late = Entry();
    builder_ = FootprintBuilder(kTestStart);
    tick_ = 0;
    Use(type);
    Row({{0, 1}, {1, 5}});
    Row({{0, 2}, {1, 7}});
    const FootprintEntry entry = Entry();
    EXPECT_EQ(entry.last, last);
    EXPECT_EQ(late.last, entry.last);
    EXPECT_EQ(late.mean, entry.mean);
    EXPECT_EQ(late.ticks, entry.ticks);
    EXPECT_EQ(late.max, entry.max);
    EXPECT_EQ(late.max_owner, entry.max_owner);
    EXPECT_EQ(late.min, entry.min);
  }
}

TEST_F(FootprintTest, ASeriesMayComeWithALatePartOnly) {
  Use(MetricType::kGauge);
  Row({});
  EXPECT_TRUE(builder_.Entries().empty());
  Amend(1, {}, {{1, 5}});
  EXPECT_EQ(Entry().ticks, 1u);
  EXPECT_EQ(Entry().mean, 5);
}

TEST_F(FootprintTest, WhatANodeCountedStaysWhenItLeaves) {
  Use(MetricType::kCounter);
  Row({{0, 100}, {1, 90}});
  Row({{0, 110}});
  Row({{0, 150}});
  const FootprintEntry e = Entry();
  // The growth of the others in the tick of the departure cannot be told from what left.
  EXPECT_GE(e.last, 230);
  EXPECT_LE(e.last, 240);
  EXPECT_EQ(e.min, 90);
  EXPECT_EQ(e.min_owner.node, 1u);
  EXPECT_EQ(e.max, 150);
}

TEST_F(FootprintTest, ALateNodeIsNotCountedTwice) {
  Use(MetricType::kCounter);
  Row({{0, 10}, {1, 10}});
  Row({{0, 20}});
  Row({{0, 30}, {1, 30}});
  const FootprintEntry e = Entry();
  EXPECT_EQ(e.last, 60);
  EXPECT_EQ(e.min, 30);
}

// As after the death of the head, which knew newer ones.
TEST_F(FootprintTest, ANodeThatComesBackWithOldValuesIsNotCountedTwice) {
  Use(MetricType::kCounter);
  Row({{0, 10}, {1, 10}});
  Row({{0, 11}});
  EXPECT_EQ(Entry().last, 20);
  Row({{0, 12}, {1, 4}});
  Row({{0, 13}, {1, 10}});
  EXPECT_EQ(Entry().last, 23);
}

// Node 1 stays while node 0 is away; then it is the other way round, which a row tells that has no
// value of this counter.
TEST_F(FootprintTest, OtherNodesAreOthersAlsoWhereTheyCameWithoutAValue) {
  Use(MetricType::kCounter);
  Row({{0, 100}, {1, 10}});
  Row({{1, 20}}, /*others=*/true);
  Row({}, /*others=*/true);
  Row({{0, 105}});
  Row({{0, 106}});
  EXPECT_EQ(Entry().last, 111);
}

TEST_F(FootprintTest, MissingValuesAreNotZero) {
  Use(MetricType::kGauge);
  Row({{0, 4}});
  Row({});
  Row({{0, 6}});
  EXPECT_EQ(Entry().ticks, 2u);
  EXPECT_EQ(Entry().mean, 5);
  EXPECT_EQ(Entry().min, 4);
}

// As of metrics that are dear to read: two nodes, sampled every third tick, and the last word.
TEST_F(FootprintTest, AMetricThatIsNotSampledAtEveryTickIsWhole) {
  Use(MetricType::kCounter);
  for (const double value : {1, 4}) {
    Row({{0, value}, {1, 2 * value}});
    Row({});
    Row({});
  }
  Row({{0, 5}, {1, 30}});
  const FootprintEntry counter = Entry();
  EXPECT_EQ(counter.ticks, 3u);
  EXPECT_EQ(counter.last, 35);
  EXPECT_EQ(counter.mean, 5);  // 35 in seven seconds
  EXPECT_EQ(counter.min, 5);
  EXPECT_EQ(counter.max_owner.node, 1u);
}

TEST_F(FootprintTest, WhatWasNeverMeasuredIsLeftOut) {
  Use(MetricType::kGauge);
  Row({});
  EXPECT_TRUE(builder_.Entries().empty());
}

TEST_F(FootprintTest, ASeriesGoesOnThroughAChangeOfSchema) {
  Use(MetricType::kCounter);
  Row({{0, 10}});
  builder_.SetSeries(
      {TestSeries("other", MetricType::kGauge), TestSeries("m", MetricType::kCounter)});
  const Reduced row[] = {Of({{0, 1}}), Of({{0, 25}})};
  builder_.AddRow(kTestStart + 5 * kSecond, row);
  const auto entries = builder_.Entries();
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].last, 25);
  EXPECT_EQ(entries[0].ticks, 2u);
  EXPECT_EQ(entries[1].series.metric.name, "other");
}

TEST_F(FootprintTest, TheSameTickTwiceCountsOnce) {
  Use(MetricType::kGauge);
  const Reduced row[] = {Of({{0, 4}})};
  builder_.AddRow(kTestStart + kSecond, row);
  builder_.AddRow(kTestStart + kSecond, row);
  EXPECT_EQ(Entry().ticks, 1u);
}

}  // namespace
}  // namespace sonde::profiles_footprint_test
