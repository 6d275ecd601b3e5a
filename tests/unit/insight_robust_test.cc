// Centre, spread and the limit for what is far off; how unevenly work is spread.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "insight/imbalance.h"
#include "insight/robust.h"

namespace sonde::insight {
namespace {

TEST(Robust, TheMedianOfOddAndEvenCounts) {
  EXPECT_EQ(MedianOf(std::vector<double>{3, 1, 2}), 2);
  EXPECT_EQ(MedianOf(std::vector<double>{4, 1, 2, 3}), 2.5);
  EXPECT_EQ(MedianOf(std::vector<double>{kNoNumber, 7, kNoNumber}), 7);
  EXPECT_TRUE(std::isnan(MedianOf(std::vector<double>{kNoNumber})));
}

TEST(Robust, HalfOfTheNumbersMayBeAnything) {
  const Centre centre = CentreOf(std::vector<double>{9, 10, 11, 10.5, 1e9, -1e12, 9.5});
  EXPECT_EQ(centre.count, 7u);
  EXPECT_EQ(centre.median, 10);
  EXPECT_NEAR(centre.deviation, 1.140 * 1.4826, 1e-12);
}

TEST(Robust, TheDeviationIsThatOfNormalNumbersHoweverFew) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal(100, 3);
  for (const size_t n : {3, 4, 5, 8, 20, 200}) {
    double sum = 0;
    constexpr int kTries = 4000;
    for (int i = 0; i < kTries; ++i) {
      std::vector<double> values(n);
      for (double& value : values) value = normal(random);
      sum += CentreOf(values).deviation;
    }
    EXPECT_NEAR(sum / kTries, 3, 0.1) << n;
  }
}

TEST(Robust, TheFarthestOfNormalNumbersIsBeyondTheLimitAsOftenAsItSays) {
  std::mt19937_64 random(2);
  std::normal_distribution<double> normal;
  for (const size_t n : {3, 4, 5, 7, 11, 17, 30, 80, 150, 700}) {
    const double limit = OutlierLimit(n, 0.05);
    int beyond = 0;
    const int tries = n > 100 ? 2000 : 10'000;
    for (int i = 0; i < tries; ++i) {
      std::vector<double> values(n);
      for (double& value : values) value = normal(random);
      const Centre centre = CentreOf(values);
      beyond += std::any_of(values.begin(), values.end(), [&](double value) {
        return std::abs(value - centre.median) > limit * centre.deviation;
      });
    }
    EXPECT_NEAR(beyond / double(tries), 0.05, 0.015) << n;
  }
  EXPECT_TRUE(std::isinf(OutlierLimit(2, 0.05)));
  EXPECT_GT(OutlierLimit(8, 1e-5), OutlierLimit(8, 1e-4));
}

TEST(Robust, AChangeOfLevelIsNoNoiseAndASpikeIsCut) {
  std::vector<double> values;
  for (int i = 0; i < 200; ++i) values.push_back((i % 2 == 0 ? 1 : -1) + (i < 100 ? 0 : 50));
  EXPECT_NEAR(NeighbourNoise(values), 1.4826 * 2 / std::sqrt(2), 1e-12);
  values[40] = 1000;
  const std::vector<double> cut = WithoutSpikes(values);
  EXPECT_LT(cut[40], 15);
  EXPECT_EQ(cut[99], values[99]);
  EXPECT_EQ(cut[100], values[100]);
}

TEST(Imbalance, OfKnownLoads) {
  const Imbalance one = ImbalanceOf(std::vector<double>{1, 1, 1, 5});
  EXPECT_EQ(one.most, 3u);
  EXPECT_EQ(one.mean, 2);
  EXPECT_DOUBLE_EQ(one.factor, 1.5);
  EXPECT_DOUBLE_EQ(one.lost, 0.6);
  EXPECT_DOUBLE_EQ(one.percentage, 0.8);
  // One does all: 1, whatever the number.
  EXPECT_DOUBLE_EQ(ImbalanceOf(std::vector<double>{0, 0, 7}).percentage, 1);
  const Imbalance even = ImbalanceOf(std::vector<double>{2, kNoNumber, 2});
  EXPECT_EQ(even.count, 2u);
  EXPECT_EQ(even.factor, 0);
  EXPECT_TRUE(std::isnan(ImbalanceOf(std::vector<double>{0, 0}).factor));
  EXPECT_TRUE(std::isnan(ImbalanceOf(std::vector<double>{3}).lost));
}

TEST(Imbalance, WhoFallsBehindInTurnIsEvenOverAllAndNotAtTheTicks) {
  const std::vector<std::vector<double>> rows = {{1, 3, 1, 3}, {3, 1, 3, 1}};
  const ImbalanceOverTime over = ImbalanceOverTicks(rows);
  EXPECT_EQ(over.overall.factor, 0);
  EXPECT_EQ(over.factors, std::vector<double>(4, 0.5));
  EXPECT_DOUBLE_EQ(over.lost_by_tick, 1.0 / 3);
}

}  // namespace
}  // namespace sonde::insight
