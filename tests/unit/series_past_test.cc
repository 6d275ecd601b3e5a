// Values of the past: rows in any order, and points among those of their series.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "series/store/past.h"
#include "series/store/store.h"

namespace sonde::series_past_test {
namespace {

Series Gauge(const std::string& name) {
  Series series;
  series.metric.name = name;
  return series;
}

class PastStore : public testing::Test {
 protected:
  PastStore() {
    store_.OnSeal([this](const SealedBlock& block) { sealed_.push_back(block.info); });
    store_.SetSchema(Schema::Make({Gauge("a"), Gauge("b")}));
  }
  void Place(Nanos time, size_t column, double value) {
    store_.Place(time, [&](std::span<double> row) { row[column] = value; });
  }
  // What the store has, as it is put among a series of other points.
  std::vector<Point> Points(const std::string& name, std::vector<Point> points = {}) const {
    std::vector<SeriesData> series = {{Gauge(name), std::move(points)}};
    const auto wanted = [&](const Series& one) { return one.metric.name == name; };
    PutPast(store_.Read(wanted, 0, 1000), series);
    return series.at(0).points;
  }

  GroupStore store_{GroupStore::Options{.first_rows = 4, .max_rows = 4, .late_rows = 1}};
  std::vector<BlockInfo> sealed_;
};

TEST_F(PastStore, RowsComeInAnyOrder) {
  Place(20, 0, 2);
  Place(10, 0, 1);
  Place(15, 1, 5);
  Place(20, 1, 6);
  EXPECT_EQ(Points("a"), (std::vector<Point>{{10, 1}, {20, 2}}));
  EXPECT_EQ(Points("b"), (std::vector<Point>{{15, 5}, {20, 6}}));
  EXPECT_TRUE(sealed_.empty());
}

TEST_F(PastStore, BlocksMayOverlapAndTheLastWordCounts) {
  for (const Nanos time : {60, 50, 40, 30, 20}) Place(time, 0, 1);
  ASSERT_EQ(sealed_.size(), 1u);
  EXPECT_EQ(std::pair(sealed_[0].first, sealed_[0].last), std::pair(Nanos{20}, Nanos{50}));
  Place(30, 0, 7);
  Place(10, 0, 8);
  store_.Seal();
  EXPECT_EQ(sealed_.back().first, 10);
  EXPECT_EQ(Points("a"),
            (std::vector<Point>{{10, 8}, {20, 1}, {30, 7}, {40, 1}, {50, 1}, {60, 1}}));
}

TEST_F(PastStore, AMetricThatComesLaterHasNoValuesBefore) {
  Place(20, 0, 2);
  store_.SetSchema(Schema::Make({Gauge("a"), Gauge("b"), Gauge("c")}));
  Place(10, 2, 3);
  EXPECT_TRUE(sealed_.empty()) << "the block goes on";
  EXPECT_EQ(Points("c"), (std::vector<Point>{{10, 3}}));
  EXPECT_EQ(Points("a"), (std::vector<Point>{{20, 2}}));
}

TEST_F(PastStore, TheyCountInPlaceOfWhatTheirTickHas) {
  Place(20, 0, 2);
  EXPECT_EQ(Points("a", {{10, 0}, {20, 0}, {30, 0}}),
            (std::vector<Point>{{10, 0}, {20, 2}, {30, 0}}));
}

TEST(Past, TheGroupHasItsNameWithAFirstRankToo) {
  for (const char* group : {"past", "past+512"}) EXPECT_TRUE(IsPastGroup(group)) << group;
  for (const char* group : {"", "pas", "pasta", "app", "app+3"}) {
    EXPECT_FALSE(IsPastGroup(group)) << group;
  }
}

TEST(Past, TheCounterTellsWhichMetricHasThem) {
  EXPECT_TRUE(CountsPastOf("loss", PastCounterOf("loss")));
  EXPECT_FALSE(CountsPastOf("loss", PastCounterOf("gain")));
  EXPECT_FALSE(CountsPastOf("loss", Gauge("loss")));
}

}  // namespace
}  // namespace sonde::series_past_test
