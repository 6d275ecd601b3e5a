// Histograms as values: counts, quantiles and bytes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "core/histogram_buckets.h"
#include "series/sketch/sketch.h"

namespace sonde::series_sketch_test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Sketch Of(const std::vector<double>& values) {
  Sketch sketch;
  for (const double value : values) {
    sketch.Add(histogram::BucketOf(value), 1);
    sketch.AddSum(value, value, value);
  }
  return sketch;
}

std::string Bytes(const Sketch& sketch) {
  std::string bytes;
  ByteWriter out(bytes);
  sketch.Encode(out);
  return bytes;
}

bool Refused(const std::string& bytes) {
  ByteReader in(bytes);
  return !Sketch::Decode(in).ok() && !in.ok();
}

std::vector<double> LogNormal(size_t n, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::lognormal_distribution<double> draw(-6, 2);
  std::vector<double> values(n);
  for (double& value : values) value = draw(random);
  return values;
}

TEST(Sketch, QuantilesAreWithinASixtyFourthOfTheExactOnes) {
  std::vector<double> values = LogNormal(100'000, 1);
  const Sketch sketch = Of(values);
  std::sort(values.begin(), values.end());
  for (const double q : {0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999}) {
    const auto rank = static_cast<size_t>(std::ceil(q * static_cast<double>(values.size())));
    const double exact = values[rank - 1];
    EXPECT_NEAR(sketch.Quantile(q), exact, exact / 64) << q;
  }
  EXPECT_EQ(sketch.Quantile(0), values.front());
  EXPECT_EQ(sketch.Quantile(1), values.back());
}

TEST(Sketch, AnEmptyOneHasNoQuantilesAndOfOneValueAllAreThatValue) {
  EXPECT_TRUE(std::isnan(Sketch().Quantile(0.5)));
  EXPECT_EQ(Sketch().min(), 0);
  EXPECT_EQ(Sketch().max(), 0);
  for (const double value : {-3.0, 0.0, 0.1, 7.0, 1e20}) {
    const Sketch one = Of({value});
    for (const double q : {0.0, 0.01, 0.5, 1.0}) EXPECT_EQ(one.Quantile(q), value);
  }
}

TEST(Sketch, PartsAddUpToTheWholeInAnyOrder) {
  const std::vector<double> values = LogNormal(10'000, 2);
  std::vector<Sketch> parts(7);
  Sketch whole;
  for (size_t i = 0; i < values.size(); ++i) {
    const Sketch one = Of({std::floor(values[i] * 1024)});  // whole numbers, so sums are exact
    parts[i % parts.size()].Merge(one);
    whole.Merge(one);
  }
  Sketch merged;
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) merged.Merge(*part);
  EXPECT_EQ(merged, whole);
  EXPECT_EQ(merged.count(), values.size());
  merged.Merge(Sketch());
  EXPECT_EQ(merged, whole);
  Sketch from_nothing;
  from_nothing.Merge(whole);
  EXPECT_EQ(from_nothing, whole);
}

TEST(Sketch, BucketsAreSortedWhateverTheOrder) {
  Sketch sketch;
  for (const uint32_t bucket : {7u, 3u, histogram::kOverflow, 5u, 3u, 0u}) sketch.Add(bucket, 2);
  sketch.Add(9, 0);
  const std::vector<Sketch::Bucket> expected = {
      {0, 2}, {3, 4}, {5, 2}, {7, 2}, {histogram::kOverflow, 2}};
  EXPECT_EQ(sketch.buckets(), expected);
  EXPECT_EQ(sketch.count(), 12u);
}

TEST(Sketch, WhatIsNotFiniteStaysOut) {
  Sketch sketch = Of({2, 3});
  const Sketch before = sketch;
  sketch.AddSum(std::nan(""), kInfinity, -kInfinity);
  sketch.AddSum(kInfinity, 1, std::nan(""));
  sketch.AddSum(0, -kInfinity, 9);
  EXPECT_EQ(sketch, before);
  const double most = std::numeric_limits<double>::max();
  sketch.AddSum(most, 2, 3);
  sketch.AddSum(most, 2, 3);
  EXPECT_EQ(sketch.sum(), most);
}

TEST(Sketch, CountsStayAtTheirLargest) {
  Sketch sketch;
  sketch.Add(3, UINT64_MAX - 1);
  Sketch twice = sketch;
  twice.Merge(sketch);
  EXPECT_EQ(twice.count(), UINT64_MAX);
  EXPECT_EQ(twice.buckets().front().second, UINT64_MAX);
  const std::string bytes = Bytes(twice);
  ByteReader again(bytes);
  EXPECT_EQ(*Sketch::Decode(again), twice);
}

TEST(Sketch, ComesBackFromItsBytes) {
  Sketch counts_only;
  counts_only.Add(100, 5);
  Sketch sum_only;
  sum_only.AddSum(2.5, 1, 1.5);
  for (const Sketch& sketch :
       {Sketch(), counts_only, sum_only, Of({-1, 0, 1e-30, 5, 1e300}), Of(LogNormal(1'000, 3))}) {
    const std::string bytes = Bytes(sketch);
    ByteReader in(bytes);
    const auto back = Sketch::Decode(in);
    ASSERT_TRUE(back.ok());
    EXPECT_TRUE(in.done());
    EXPECT_EQ(*back, sketch);
    for (size_t n = 0; n < bytes.size(); ++n) EXPECT_TRUE(Refused(bytes.substr(0, n)));
  }
}

TEST(Sketch, BytesThatNoSketchHasAreRefused) {
  const auto bytes = [](std::initializer_list<std::pair<uint64_t, uint64_t>> buckets, double sum,
                        uint8_t known, double min, double max) {
    std::string text;
    ByteWriter out(text);
    out.Varint(buckets.size());
    for (const auto& [gap, count] : buckets) {
      out.Varint(gap);
      out.Varint(count);
    }
    out.Fixed(sum);
    out.Fixed(known);
    if (known != 0) out.Fixed(min), out.Fixed(max);
    return text;
  };
  EXPECT_FALSE(Refused(bytes({{2, 3}, {0, 1}}, 1, 1, 1, 2)));
  EXPECT_FALSE(Refused(bytes({{histogram::kOverflow, 3}}, 1, 1, 1, 2)));
  EXPECT_TRUE(Refused(bytes({{2, 0}}, 1, 1, 1, 2))) << "nothing in a bucket";
  EXPECT_TRUE(Refused(bytes({{histogram::kOverflow + 1, 1}}, 1, 1, 1, 2))) << "no such bucket";
  EXPECT_TRUE(Refused(bytes({{histogram::kOverflow, 1}, {0, 1}}, 1, 1, 1, 2))) << "nor this";
  EXPECT_TRUE(Refused(bytes({{5, 1}, {UINT64_MAX - 5, 1}}, 1, 1, 1, 2))) << "nor by overflow";
  EXPECT_TRUE(Refused(bytes({{2, 1}}, std::nan(""), 1, 1, 2)));
  EXPECT_TRUE(Refused(bytes({{2, 1}}, kInfinity, 1, 1, 2)));
  EXPECT_TRUE(Refused(bytes({{2, 1}}, 1, 1, -kInfinity, 2)));
  EXPECT_TRUE(Refused(bytes({{2, 1}}, 1, 1, 2, std::nan(""))));
  EXPECT_TRUE(Refused(bytes({{2, 1}}, 1, 1, 3, 2))) << "min above max";
  EXPECT_TRUE(Refused(bytes({{2, 1}}, 1, 2, 1, 2))) << "no such flag";
}

}  // namespace
}  // namespace sonde::series_sketch_test
