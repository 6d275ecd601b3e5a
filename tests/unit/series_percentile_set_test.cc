// Percentiles of values that come together in any order: few exactly, many within 1 %.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "series/query/percentile_set.h"

namespace sonde::series_percentile_set_test {
namespace {

constexpr double kShares[] = {0.05, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999};

std::string Bytes(const PercentileSet& set) {
  std::string bytes;
  ByteWriter out(bytes);
  set.Write(out);
  return bytes;
}

PercentileSet Of(const std::vector<double>& values) {
  PercentileSet set;
  for (const double value : values) set.Add(value);
  return set;
}

std::vector<double> Some(size_t n, std::mt19937_64& random) {
  std::lognormal_distribution<double> skewed(3, 1.5);
  std::vector<double> values(n);
  for (double& v : values) v = random() % 5 == 0 ? std::round(skewed(random)) : skewed(random);
  return values;
}

TEST(PercentileSet, FewValuesGiveOpenTsdbsEstimate) {
  EXPECT_EQ(Of({4, 1, 3, 2}).Get(0.5), 2.5);
  EXPECT_EQ(Of({4, 1, 3, 2}).Get(0.95), 4);
  EXPECT_EQ(Of({4, 1, 3, 2}).Get(0.05), 1);
  EXPECT_EQ(Of({7}).Get(0.99), 7);
  EXPECT_EQ(Of({-1, -3, 5}).Get(0.5), -1);
  EXPECT_TRUE(std::isnan(Of({}).Get(0.5)));
  EXPECT_TRUE(std::isnan(Of({std::nan(""), std::numeric_limits<double>::infinity()}).Get(0.5)));
}

TEST(PercentileSet, ManyAreWithinOnePercent) {
  std::mt19937_64 random(1);
  for (const size_t n : {64u, 65u, 200u, 5'000u}) {
    std::vector<double> values = Some(n, random);
    const PercentileSet set = Of(values);
    std::sort(values.begin(), values.end());
    for (const double share : kShares) {
      const double exact = PercentileAt(values, share);
      const double allowed = n <= PercentileSet::kMaxExact ? 0 : 0.01 * exact;
      EXPECT_NEAR(set.Get(share), exact, allowed) << n << ", " << share;
    }
  }
}

// However they are grouped, and over a link in between.
TEST(PercentileSet, AnyTreeOfPartsIsTheWholeBitForBit) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 300; ++round) {
    const std::vector<double> values = Some(1 + random() % 150, random);
    std::vector<PercentileSet> parts(1 + random() % 40);
    for (const double value : values) parts[random() % parts.size()].Add(value);
    while (parts.size() > 1) {
      std::shuffle(parts.begin(), parts.end(), random);
      const PercentileSet last = parts.back();
      parts.pop_back();
      parts.back().Merge(last);
      const std::string bytes = Bytes(parts.back());
      ByteReader in(bytes);
      parts.back() = PercentileSet::Read(in);
      ASSERT_TRUE(in.done());
    }
    ASSERT_EQ(Bytes(parts[0]), Bytes(Of(values)));
  }
}

TEST(PercentileSet, WhatWriteCannotHaveWrittenIsRefused) {
  const auto refused = [](const std::string& bytes) {
    ByteReader in(bytes);
    PercentileSet::Read(in);
    return !in.ok();
  };
  std::string falling;
  ByteWriter w(falling);
  w.Varint(2);
  w.Fixed(2.0);
  w.Fixed(1.0);
  EXPECT_TRUE(refused(falling));
  std::string infinite;
  ByteWriter i(infinite);
  i.Varint(1);
  i.Fixed(std::numeric_limits<double>::infinity());
  EXPECT_TRUE(refused(infinite));
  std::string small;  // a sketch of what would have been kept as it is
  ByteWriter s(small);
  s.Varint(PercentileSet::kMaxExact + 1);
  QuantileSketch one;
  one.Add(1);
  one.Encode(s);
  EXPECT_TRUE(refused(small));
  EXPECT_TRUE(refused(std::string(2, '\xff')));
}

}  // namespace
}  // namespace sonde::series_percentile_set_test
