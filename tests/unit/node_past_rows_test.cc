// A node's values of the past: at their ticks, with their series, within a bound that is told.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "daemon/node/record/past_rows.h"
#include "series/store/past.h"

namespace sonde::node::node_past_rows_test {
namespace {

class PastRowsTest : public testing::Test {
 protected:
  explicit PastRowsTest(size_t room = 64u << 10) : rows_(room, kSecond) {
    for (const char* name : {"loss", "gain"}) {
      Series one;
      one.metric.name = name;
      series_.push_back(one);
    }
    rows_.OnSeal([this](const SealedBlock& block) { sent_ += block.bytes->size(); });
  }
  bool Add(const std::vector<collect::PastValue>& values, Nanos newest = 1'000'000 * kSecond) {
    return rows_.Add(values, series_, newest, [](const Schema::Ptr& schema) { return schema; });
  }
  // By seconds.
  std::vector<std::pair<Nanos, double>> Points(const std::string& name) const {
    std::vector<SeriesData> data = {{Series(), {}}};
    data[0].series.metric.name = name;
    const auto wanted = [&](const Series& one) { return one.metric.name == name; };
    PutPast(rows_.store().Read(wanted, 0, INT64_MAX), data);
    std::vector<std::pair<Nanos, double>> points;
    for (const Point& p : data.at(0).points) points.emplace_back(p.time / kSecond, p.value);
    return points;
  }
  using Points_ = std::vector<std::pair<Nanos, double>>;

  PastRows rows_;
  std::vector<Series> series_;
  size_t sent_ = 0;
};

TEST_F(PastRowsTest, AValueBelongsToTheNearestTickAndTheLastWordCounts) {
  EXPECT_TRUE(Add({{10 * kSecond, 0, 1}, {10 * kSecond + 1, 0, 2}, {11 * kSecond - 1, 0, 3}}));
  EXPECT_TRUE(Add({{9 * kSecond, 1, 4}, {9 * kSecond + kSecond / 2, 0, 5}}));
  EXPECT_TRUE(Add({{-kSecond, 0, 6}, {kSecond / 2 - 1, 0, 7}}));
  EXPECT_EQ(Points("loss"), (Points_{{0, 7}, {10, 5}, {11, 3}}));
  EXPECT_EQ(Points("gain"), (Points_{{9, 4}}));
}

TEST_F(PastRowsTest, NoneIsOfATickThatHasNotCome) {
  EXPECT_TRUE(Add({{10 * kSecond + kSecond / 2, 0, 1}}, 10 * kSecond));
  EXPECT_EQ(Points("loss"), (Points_{{10, 1}}));
}

// Whatever was kept can be read, and what was not is counted: also within one batch.
TEST_F(PastRowsTest, BeyondTheRoomNothingIsKeptAndNothingIsForgotten) {
  std::vector<collect::PastValue> values;
  for (int i = 0; i < 200'000; ++i) values.push_back({(i + 1) * kSecond, 0, i * 1.1});
  EXPECT_FALSE(Add(values));
  EXPECT_LT(sent_, 80u << 10);
  EXPECT_EQ(Points("loss").size() + rows_.dropped(), values.size());
  EXPECT_GT(rows_.dropped(), 0u);
  EXPECT_EQ(rows_.store().dropped_rows(), 0u);
  EXPECT_FALSE(Add({{kSecond, 1, 1}}));
}

// A schema that is larger than the blocks' room takes nothing from it.
TEST_F(PastRowsTest, ManySeriesHaveTheSameRoom) {
  std::vector<collect::PastValue> values;
  for (uint32_t i = 2; i < 600; ++i) {
    series_.push_back(series_[0]);
    series_.back().tags.Set("part", std::to_string(i));
    for (Nanos tick = 1; tick < 40; ++tick) values.push_back({tick * kSecond, i, 1});
  }
  EXPECT_TRUE(Add(values));
  EXPECT_EQ(rows_.dropped(), 0u);
  rows_.Seal();
  size_t points = 0;
  const auto all = [](const Series&) { return true; };
  for (const SeriesData& one : rows_.store().Read(all, 0, INT64_MAX)) points += one.points.size();
  EXPECT_EQ(points, values.size());
}

}  // namespace
}  // namespace sonde::node::node_past_rows_test
