// What a rule would have raised, from the series of nodes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "series/alarm/replay.h"

namespace sonde::alarms {
namespace {

using testing::HasSubstr;

constexpr Nanos kBegin = 1000 * kSecond;

Rule RuleToTry(std::string_view text) {
  const Result<Rule> rule = ParseRule("r", text);
  EXPECT_TRUE(rule.ok()) << rule.status().message();
  return *rule;
}

// A value each second from kBegin on; NaN: no point.
SeriesData EachSecond(const std::string& name, Tags tags, const std::vector<double>& values,
                      MetricType type = MetricType::kGauge) {
  SeriesData data;
  data.series.metric.name = name;
  data.series.metric.type = type;
  data.series.metric.unit = "1";
  data.series.metric.reduction = Reduction::kSum;
  data.series.tags = std::move(tags);
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(values[i])) continue;
    data.points.push_back({kBegin + static_cast<Nanos>(i) * kSecond, values[i]});
  }
  return data;
}

ReplayNode NodeWith(uint32_t index, std::vector<SeriesData> series) {
  return {"n" + std::to_string(index + 1), index, kBegin, 0, std::move(series)};
}

std::vector<std::pair<int, int>> Seconds(const Replay& replay) {
  std::vector<std::pair<int, int>> all;
  for (const Replayed& one : replay.alarms) {
    const auto second = [](Nanos t) {
      return t == 0 ? -1 : static_cast<int>((t - kBegin) / kSecond);
    };
    all.emplace_back(second(one.raised), second(one.over));
  }
  return all;
}

Replay Tried(std::string_view rule, const std::vector<ReplayNode>& nodes) {
  const Result<Replay> replay =
      ReplayRule(RuleToTry(rule), nodes, kSecond, kBegin, kBegin + 5 * kSecond);
  EXPECT_TRUE(replay.ok()) << replay.status().message();
  return *replay;
}

constexpr double kNoValue = std::numeric_limits<double>::quiet_NaN();

TEST(AlarmReplayTest, TellsSinceWhenUntilWhenAndOnWhom) {
  const Replay replay =
      Tried("x any > 5 for 2s", {NodeWith(0, {EachSecond("x", {}, {1, 1, 1, 1, 1, 1, 1, 1})}),
                                 NodeWith(1, {EachSecond("x", {}, {1, 9, 8, 7, 1, 1, 1, 9})})});
  EXPECT_EQ(Seconds(replay), (std::vector<std::pair<int, int>>{{3, 6}}));
  EXPECT_EQ(replay.alarms[0].owner, (Owner{1, Owner::kNobody}));
  EXPECT_EQ(replay.alarms[0].value, 7);
  EXPECT_EQ(replay.raised, 1u);
  EXPECT_EQ(replay.rows, 8u);
  EXPECT_EQ(replay.first, kBegin);
  EXPECT_EQ(replay.last, kBegin + 7 * kSecond);
}

TEST(AlarmReplayTest, RatesOfTasksAreMadeByTheirNode) {
  const auto task = [](const std::string& rank, const std::vector<double>& values) {
    return EachSecond("c", {{"task", rank}}, values, MetricType::kCounter);
  };
  const Replay replay = Tried(
      "c any rate > 5", {NodeWith(0, {task("0", {0, 1, 2, 3, 4}), task("7", {0, 1, 9, 10, 11})})});
  EXPECT_EQ(Seconds(replay), (std::vector<std::pair<int, int>>{{2, 3}}));
  EXPECT_EQ(replay.alarms[0].owner, (Owner{0, 7}));
  EXPECT_EQ(replay.alarms[0].value, 8);
}

TEST(AlarmReplayTest, ASumThatLacksANodeIsPassedOver) {
  const std::vector<ReplayNode> nodes = {
      NodeWith(0, {EachSecond("x", {}, {3, 3, 3, 3, 3})}),
      NodeWith(1, {EachSecond("x", {}, {3, 3, 3, kNoValue, 3})})};
  EXPECT_TRUE(Tried("x sum < 5", nodes).alarms.empty());
  EXPECT_TRUE(Tried("x count < 2", nodes).alarms.empty());
  EXPECT_EQ(Tried("x max < 5", nodes).alarms.size(), 1u);
}

TEST(AlarmReplayTest, CountersKeepWhatANodeHadThatIsGone) {
  ReplayNode gone = NodeWith(1, {EachSecond("c", {}, {10, 20}, MetricType::kCounter)});
  gone.left = kBegin + kSecond;
  const std::vector<ReplayNode> nodes = {
      NodeWith(0, {EachSecond("c", {}, {1, 2, 3, 4, 5}, MetricType::kCounter)}), gone};
  EXPECT_EQ(Seconds(Tried("c > 23", nodes)),
            (std::vector<std::pair<int, int>>{{3, -1}}));  // 20 + 4
}

TEST(AlarmReplayTest, WhatIsReadSeldomHasNoValueInBetween) {
  std::vector<double> slow(21, kNoValue);
  slow[0] = 0, slow[10] = 100, slow[20] = 200;
  const std::vector<ReplayNode> nodes = {
      NodeWith(0, {EachSecond("slow", {}, slow, MetricType::kCounter),
                   EachSecond("x", {}, std::vector<double>(21, 1))})};
  EXPECT_EQ(Seconds(Tried("slow rate >= 10 and x > 0", nodes)),
            (std::vector<std::pair<int, int>>{{10, -1}}));
}

TEST(AlarmReplayTest, AbsenceAndSingleNodes) {
  const std::vector<ReplayNode> nodes = {
      NodeWith(0, {EachSecond("x", {}, {1, 1, 1, 1, 1, 1})}),
      NodeWith(1, {EachSecond("x", {}, {9, 9, 1, 1, 1, 1}),
                   EachSecond("y", {}, {1, 1, kNoValue, kNoValue, kNoValue, 1})})};
  EXPECT_EQ(Seconds(Tried("y absent for 2s calm 0s", nodes)),
            (std::vector<std::pair<int, int>>{{4, 5}}));
  EXPECT_EQ(Seconds(Tried("x{host=n2} > 5", nodes)), (std::vector<std::pair<int, int>>{{0, 2}}));
  EXPECT_TRUE(Tried("x{host=n1} > 5", nodes).alarms.empty());
}

TEST(AlarmReplayTest, PointsBesideTheTicksMakeNoRow) {
  // A node says goodbye between ticks.
  SeriesData gauge = EachSecond("x", {}, {1, 1, 1});
  SeriesData counter = EachSecond("c", {}, {1, 2, 3}, MetricType::kCounter);
  for (SeriesData* data : {&gauge, &counter}) {
    data->points.push_back({kBegin + 2 * kSecond + 300 * kMillisecond, 9});
  }
  ReplayNode gone = NodeWith(0, {gauge, counter});
  gone.left = kBegin + 2 * kSecond + 300 * kMillisecond;
  EXPECT_EQ(Tried("x > 5", {gone}).rows, 3u);
  EXPECT_TRUE(Tried("x > 5", {gone}).alarms.empty());
  const ReplayNode other = NodeWith(1, {EachSecond("x", {}, {1, 1, 1, 1}),
                                        EachSecond("c", {}, {0, 0, 0, 0}, MetricType::kCounter)});
  EXPECT_TRUE(Tried("x any > 5", {gone, other}).alarms.empty());
  EXPECT_EQ(Seconds(Tried("c > 5", {gone, other})), (std::vector<std::pair<int, int>>{{3, -1}}));
}

TEST(AlarmReplayTest, WhatCannotBeTriedIsRefused) {
  const Result<Replay> missing =
      ReplayRule(RuleToTry("sonde_node_missing any > 0"), {}, kSecond, 0, kBegin);
  EXPECT_EQ(missing.status().code(), Code::kInvalid);
  EXPECT_THAT(std::string(missing.status().message()), HasSubstr("not recorded"));
  std::vector<SeriesData> many(3000, EachSecond("x", {}, std::vector<double>(6000, 1)));
  for (size_t i = 0; i < many.size(); ++i) many[i].series.tags.Set("task", std::to_string(i));
  const Result<Replay> large =
      ReplayRule(RuleToTry("x > 5"), std::vector{NodeWith(0, std::move(many))}, kSecond, 0, kBegin);
  EXPECT_EQ(large.status().code(), Code::kLimit);
  EXPECT_THAT(std::string(large.status().message()), HasSubstr("shorter range"));
}

TEST(AlarmReplayTest, VeryManyAlarmsAreCounted) {
  std::vector<double> values;
  for (size_t i = 0; i < 2 * kMaxReplayed + 20; ++i) values.push_back(i % 2 == 0 ? 0 : 9);
  const Replay replay = Tried("x > 5", {NodeWith(0, {EachSecond("x", {}, values)})});
  EXPECT_EQ(replay.alarms.size(), kMaxReplayed);
  EXPECT_EQ(replay.raised, kMaxReplayed + 10);
}

TEST(AlarmReplayTest, WithoutDataNothingIsRaised) {
  const Replay replay = Tried("x > 5", {});
  EXPECT_TRUE(replay.alarms.empty());
  EXPECT_EQ(replay.rows, 0u);
}

}  // namespace
}  // namespace sonde::alarms
