// Quantiles over nodes and tasks: their error, merging in any grouping, bounds and bytes.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "series/sketch/quantile_sketch.h"

namespace sonde::series_quantile_sketch_test {
namespace {

constexpr double kQuantiles[] = {0.001, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 0.999};

QuantileSketch Of(const std::vector<double>& values) {
  QuantileSketch sketch;
  for (const double value : values) sketch.Add(value);
  return sketch;
}

std::string Bytes(const QuantileSketch& sketch) {
  std::string bytes;
  ByteWriter out(bytes);
  sketch.Encode(out);
  return bytes;
}

bool Refused(const std::string& bytes) {
  ByteReader in(bytes);
  QuantileSketch sketch;
  const bool refused = !sketch.Decode(in).ok();
  EXPECT_EQ(refused, !in.ok());
  EXPECT_TRUE(!refused || sketch.empty());
  return refused;
}

double Exact(const std::vector<double>& sorted, double q) {
  return sorted[static_cast<size_t>(std::ceil(q * static_cast<double>(sorted.size()))) - 1];
}

// Any finite doubles, both signs.
std::vector<double> Anything(size_t n, std::mt19937_64& random) {
  std::vector<double> values;
  while (values.size() < n) {
    const auto value = std::bit_cast<double>(random());
    if (std::isfinite(value)) values.push_back(value);
  }
  return values;
}

TEST(QuantileSketch, QuantilesAreWithinOnePercentOfTheExactOnes) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal(240, 3);
  std::lognormal_distribution<double> skewed(10, 1);
  std::exponential_distribution<double> signed_ones(0.01);
  for (int kind = 0; kind < 3; ++kind) {
    std::vector<double> values(20'000);
    for (double& v : values) {
      v = kind == 0   ? normal(random)
          : kind == 1 ? skewed(random)
                      : std::round(signed_ones(random)) - 40;
    }
    const QuantileSketch sketch = Of(values);
    EXPECT_LE(sketch.Error(), 0.01);
    EXPECT_EQ(sketch.count(), values.size());
    std::sort(values.begin(), values.end());
    for (const double q : kQuantiles) {
      const double exact = Exact(values, q);
      EXPECT_NEAR(sketch.Quantile(q), exact, std::fabs(exact) * 0.01) << kind << ", " << q;
    }
    EXPECT_EQ(sketch.Quantile(0), values.front());
    EXPECT_EQ(sketch.Quantile(1), values.back());
  }
}

// A percentile lies on the line between two values. Where these have different signs it may be far
// smaller than both, and the error is that of the two.
TEST(QuantileSketch, APercentileIsAsCloseAsTheTwoValuesBetweenWhichItLies) {
  std::mt19937_64 random(7);
  bool beyond_a_percent = false;
  for (int round = 0; round < 2000; ++round) {
    std::vector<double> values(65 + random() % 40);
    for (double& v : values) v = (static_cast<double>(random() % 4001) - 2000) / 8;
    const QuantileSketch sketch = Of(values);
    std::sort(values.begin(), values.end());
    for (const double share : {0.05, 0.5, 0.95}) {
      const double place = share * static_cast<double>(values.size() + 1);
      const auto rank = static_cast<size_t>(place);
      const double low = values[rank - 1];
      const double high = values[rank];
      const double exact = low + (place - static_cast<double>(rank)) * (high - low);
      const double error = std::fabs(sketch.Percentile(share) - exact);
      ASSERT_LE(error, std::max(std::fabs(low), std::fabs(high)) * sketch.Error())
          << round << ", " << share;
      if (error > std::fabs(exact) * 0.01) beyond_a_percent = true;
    }
  }
  EXPECT_TRUE(beyond_a_percent) << "so the documents must not say less";
}

// What is wider than the buckets reach costs precision, and it says how much.
TEST(QuantileSketch, AnyRangeFitsAndTheErrorIsTold) {
  std::mt19937_64 random(2);
  for (const int spread : {10, 100, 1000}) {
    std::vector<double> values(20'000);
    for (double& v : values) {
      v = std::ldexp(1 + static_cast<double>(random() % 1000) / 1000,
                     static_cast<int>(random() % static_cast<uint64_t>(spread)));
    }
    const QuantileSketch sketch = Of(values);
    EXPECT_LE(sketch.buckets().size(), QuantileSketch::kMaxBuckets);
    EXPECT_LE(Bytes(sketch).size(), QuantileSketch::kMaxBytes);
    EXPECT_EQ(sketch.Error() <= 0.01, spread == 10);
    std::sort(values.begin(), values.end());
    for (const double q : kQuantiles) {
      const double exact = Exact(values, q);
      EXPECT_NEAR(sketch.Quantile(q), exact, exact * sketch.Error()) << spread << ", " << q;
    }
  }
  const QuantileSketch all = Of(Anything(100'000, random));
  EXPECT_LE(all.buckets().size(), QuantileSketch::kMaxBuckets);
  EXPECT_LE(Bytes(all).size(), QuantileSketch::kMaxBytes);
}

TEST(QuantileSketch, PartsMergeToTheSameBitsInAnyGrouping) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 200; ++round) {
    std::vector<double> values;
    if (round % 2 == 0) {
      values = Anything(1 + random() % 3000, random);
    } else {
      std::lognormal_distribution<double> draw(0, static_cast<double>(1 + random() % 6));
      values.resize(1 + random() % 3000);
      for (double& v : values) v = draw(random) - (random() % 3 == 0 ? 1 : 0);
    }
    const QuantileSketch whole = Of(values);
    std::shuffle(values.begin(), values.end(), random);
    std::vector<QuantileSketch> parts(1 + random() % 10);
    for (const double v : values) parts[random() % parts.size()].Add(v);
    while (parts.size() > 1) {
      const size_t i = random() % (parts.size() - 1);
      parts[i].Merge(parts.back());
      parts.pop_back();
    }
    ASSERT_TRUE(parts[0] == whole) << "round " << round;
  }
}

TEST(QuantileSketch, WhatIsNoNumberStaysOut) {
  const double infinity = std::numeric_limits<double>::infinity();
  QuantileSketch sketch = Of({std::nan(""), infinity, -infinity});
  EXPECT_TRUE(sketch.empty());
  EXPECT_TRUE(std::isnan(sketch.Quantile(0.5)));
  sketch.Add(0);
  sketch.Add(-0.0);
  sketch.Add(5e-324);
  EXPECT_EQ(sketch.buckets().size(), 1u);
  EXPECT_EQ(sketch.Quantile(0.5), 0);
  sketch.Clear();
  EXPECT_TRUE(sketch == QuantileSketch());
}

TEST(QuantileSketch, CountsStayAtTheirLargest) {
  QuantileSketch sketch;
  sketch.Add(1, UINT64_MAX - 1);
  sketch.Add(1, 5);
  sketch.Add(2, 5);
  EXPECT_EQ(sketch.count(), UINT64_MAX);
  EXPECT_NEAR(sketch.Quantile(0.5), 1, 0.01);
}

TEST(QuantileSketch, ComesBackFromItsBytes) {
  std::mt19937_64 random(4);
  for (int round = 0; round < 100; ++round) {
    const QuantileSketch sketch = Of(Anything(random() % 200, random));
    const std::string bytes = Bytes(sketch);
    QuantileSketch back = Of({1, 2, 3});
    ByteReader in(bytes);
    ASSERT_TRUE(back.Decode(in).ok());
    ASSERT_TRUE(in.done());
    ASSERT_TRUE(back == sketch);
    for (size_t n = 0; n < bytes.size(); ++n) ASSERT_TRUE(Refused(bytes.substr(0, n))) << n;
  }
  std::vector<double> near(1000);
  for (double& v : near) v = 100 + static_cast<double>(random() % 100);
  EXPECT_LT(Bytes(Of(near)).size(), 160u) << "a byte or two for each of 64 buckets";
}

TEST(QuantileSketch, BytesThatNoSketchHasAreRefused) {
  const std::string good = Bytes(Of({1, 2}));
  EXPECT_FALSE(Refused(good));
  std::string bad = good;
  bad[0] = 10;  // a level that there is not
  EXPECT_TRUE(Refused(bad));
  bad = good;
  bad[good.size() - 1] ^= 1;  // a maximum that is not in the last bucket
  EXPECT_TRUE(Refused(bad));
  EXPECT_TRUE(Refused({"\0\xff\xff\xff\x7f", 5}));
  EXPECT_TRUE(Refused({"\3\0", 2})) << "coarse for nothing";
  EXPECT_FALSE(Refused({"\0\0", 2}));
}

}  // namespace
}  // namespace sonde::series_quantile_sketch_test
