// Sums that do not depend on order or grouping, against integers.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "core/bytes.h"
#include "series/block/number_column.h"
#include "series/query/exact_sum.h"
#include "series/query/group_values.h"

namespace sonde::series_exact_sum_test {
namespace {

constexpr double kMax = std::numeric_limits<double>::max();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

uint64_t Bits(double v) { return std::bit_cast<uint64_t>(v); }

double Big(const std::vector<double>& values) {
  BigSum sum;
  for (const double v : values) sum.Add(v);
  return sum.Value();
}

// Of any magnitude that there is, so that sums lose digits in doubles.
double RandomValue(std::mt19937_64& random) {
  switch (random() % 6) {
    case 0:
      return std::bit_cast<double>((random() & ~(uint64_t{0x7ff} << 52)) | (random() % 2047) << 52);
    case 1:
      return static_cast<double>(random() % 1'000'000) / 100;
    case 2:
      return -static_cast<double>(random() >> 11);
    case 3:
      return random() % 2 == 0 ? 0.0 : -0.0;
    case 4:
      return kMax * (random() % 2 == 0 ? 1 : -1);
    default:
      return std::ldexp(static_cast<double>(random() >> 11) - 0x1p52,
                        static_cast<int>(random() % 60));
  }
}

TEST(BigSum, KeepsWhatDoublesLose) {
  EXPECT_EQ(Big({}), 0);
  EXPECT_EQ(Bits(Big({-0.0})), Bits(0.0));
  EXPECT_EQ(Big({1e300, 1, -1e300}), 1);
  EXPECT_EQ(Big({kMax, kMax, -kMax}), kMax);
  EXPECT_EQ(Big({kMax, kMax}), kInfinity);
  EXPECT_EQ(Big({-kMax, -kMax}), -kInfinity);
  EXPECT_EQ(Big({5e-324, 5e-324}), 1e-323);
  EXPECT_EQ(Big({1, -5e-324, -1}), -5e-324);
  EXPECT_EQ(Big({0x1p-1022, -5e-324}), 0x1p-1022 - 5e-324);
}

TEST(BigSum, RoundsToNearestAndTiesToEven) {
  EXPECT_EQ(Big({1, 0x1p-53}), 1);
  EXPECT_EQ(Big({1, 0x1p-53, 5e-324}), 1 + 0x1p-52);
  EXPECT_EQ(Big({1, 0x1p-53, -5e-324}), 1);
  EXPECT_EQ(Big({1 + 0x1p-52, 0x1p-53}), 1 + 0x1p-51);
  EXPECT_EQ(Big({kMax, 0x1p969}), kMax);  // less than half a unit in the last place
  EXPECT_EQ(Big({kMax, 0x1p970}), kInfinity);
}

// Multiples of 2^-20 whose sums fit 64 bits.
TEST(BigSum, AgreesWithIntegers) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 2000; ++round) {
    BigSum sum;
    int64_t exact = 0;
    for (uint64_t n = random() % 40; n > 0; --n) {
      const auto units =
          static_cast<int64_t>(random() >> (11 + random() % 40)) * (random() % 2 == 0 ? 1 : -1);
      exact += units;
      sum.Add(std::ldexp(static_cast<double>(units), -20));
    }
    ASSERT_EQ(sum.Value(), std::ldexp(static_cast<double>(exact), -20)) << round;
  }
}

TEST(BigSum, ComesBackFromBytes) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 1000; ++round) {
    BigSum sum;
    for (uint64_t n = random() % 5; n > 0; --n) sum.Add(RandomValue(random));
    std::string bytes;
    ByteWriter out(bytes);
    sum.Encode(out);
    ByteReader in(bytes);
    ASSERT_EQ(BigSum::Decode(in), sum);
    ASSERT_TRUE(in.done());
    for (size_t n = 0; n < bytes.size(); ++n) {
      ByteReader cut(std::string_view(bytes).substr(0, n));
      (void)BigSum::Decode(cut);
      ASSERT_FALSE(cut.ok()) << n;
    }
  }
}

// Whatever the order and the grouping, bit for bit what the integer gives.
TEST(GroupValues, ASumIsExactWhateverItsOrder) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 5000; ++round) {
    std::vector<double> values(random() % 12);
    const bool wild = random() % 2 == 0;
    for (double& v : values) {
      v = wild ? RandomValue(random) : static_cast<double>(random() % 100'000) / 1000;
    }
    const double expected = Big(values);
    std::shuffle(values.begin(), values.end(), random);
    std::vector<GroupValues> parts(1 + random() % 4, GroupValues(Aggregator::kSum, 1));
    for (const double v : values) parts[random() % parts.size()].Add(0, v);
    GroupValues all(Aggregator::kSum, 1);
    for (const GroupValues& part : parts) all.Merge(0, part, 0);
    if (values.empty()) {
      ASSERT_TRUE(std::isnan(all.Get(0)));
    } else {
      ASSERT_EQ(Bits(all.Get(0)), Bits(expected)) << round;
    }
  }
}

TEST(GroupValues, InfinitiesWinAndOppositeOnesAreNoNumber) {
  const auto sum = [](const std::vector<double>& values) {
    GroupValues group(Aggregator::kSum, 1);
    for (const double v : values) group.Add(0, v);
    return group.Get(0);
  };
  EXPECT_EQ(sum({1e300, 1, kInfinity}), kInfinity);
  EXPECT_EQ(sum({-kInfinity, 1e300, 1}), -kInfinity);
  EXPECT_TRUE(std::isnan(sum({kInfinity, 1, -kInfinity, kInfinity})));
}

TEST(GroupValues, EveryAggregateComesBackFromBytesAndCutOnesAreRefused) {
  std::mt19937_64 random(4);
  for (int round = 0; round < 600; ++round) {
    const auto aggregator = static_cast<Aggregator>(random() % 6);
    const size_t times = random() % 20;
    GroupValues group(aggregator, times);
    const bool wild = random() % 3 == 0;
    for (uint64_t n = random() % 60; n > 0 && times > 0; --n) {
      group.Add(random() % times, wild ? RandomValue(random) : static_cast<double>(random() % 900));
    }
    std::string bytes;
    ByteWriter out(bytes);
    group.Write(out);
    ByteReader in(bytes);
    const GroupValues back = GroupValues::Read(aggregator, times, in);
    ASSERT_TRUE(in.done()) << round;
    for (size_t i = 0; i < times; ++i) {
      ASSERT_EQ(back.Any(i), group.Any(i));
      if (group.Any(i)) {
        ASSERT_EQ(Bits(back.Get(i)), Bits(group.Get(i)));
      }
    }
    for (size_t n = 0; n < bytes.size(); ++n) {
      ByteReader cut(std::string_view(bytes).substr(0, n));
      (void)GroupValues::Read(aggregator, times, cut);
      ASSERT_FALSE(cut.ok()) << round << ", " << n;
    }
  }
}

TEST(NumberColumn, EveryDoubleComesBackAndWhatIsDecimalIsSmall) {
  const auto size_of = [](const std::vector<double>& values) {
    std::string bytes;
    ByteWriter out(bytes);
    WriteNumbers(values, out);
    std::vector<double> back(values.size());
    ByteReader in(bytes);
    ReadNumbers(in, back);
    EXPECT_TRUE(in.done());
    for (size_t i = 0; i < values.size(); ++i) EXPECT_EQ(Bits(back[i]), Bits(values[i])) << i;
    return bytes.size();
  };
  std::vector<double> counter, hundredths, any, same;
  for (int i = 0; i < 1000; ++i) {
    counter.push_back(1e9 + 700.0 * i);
    hundredths.push_back((5000 + i % 90) / 100.0);
    any.push_back(std::sqrt(i));
    same.push_back(0.1);
  }
  EXPECT_EQ(size_of({}), 0u);
  EXPECT_EQ(size_of(same), 9u);
  EXPECT_LT(size_of(counter), 2100u);
  EXPECT_LT(size_of(hundredths), 2100u);
  EXPECT_EQ(size_of(any), 8001u);
  size_of({0.0, -0.0, std::nan(""), kInfinity, 5e-324, kMax, 9007199254740992.0, -1});
}

}  // namespace
}  // namespace sonde::series_exact_sum_test
