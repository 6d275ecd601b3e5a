// Whatever rows of doubles there are, a block gives them back bit for bit.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "series/block/block.h"

namespace sonde::series_block_property_test {
namespace {

using Random = std::mt19937_64;

struct Rows {
  std::vector<Nanos> times;
  std::vector<double> values;  // column after column
  size_t columns = 0;
};

// Of any class: the bits decide.
double AnyDouble(Random& random) {
  using Limits = std::numeric_limits<double>;
  switch (random() % 9) {
    case 0:
      return std::bit_cast<double>(random());
    case 1:  // denormals
      return std::bit_cast<double>(random() % (uint64_t{1} << 52) | (random() << 63));
    case 2:  // NaNs of any payload and sign
      return std::bit_cast<double>(random() | 0x7ff0000000000001);
    case 3:
      return random() % 2 ? Limits::infinity() : -Limits::infinity();
    case 4:
      return random() % 2 ? 0.0 : -0.0;
    case 5:
      return static_cast<double>(static_cast<float>(random()) / 3);
    case 6:
      return static_cast<double>(static_cast<int64_t>(random()) >> (random() % 64));
    case 7:
      return static_cast<double>(random() % 100'000) / std::pow(10, random() % 10);
    default:
      return std::nan("");
  }
}

// One that goes on from `before` as what is measured does, or does not.
double Next(double before, uint64_t shape, Random& random) {
  switch (shape) {
    case 0:
      return before + static_cast<double>(random() % 3);
    case 1:
      return before + static_cast<double>(random() % 100'000'000);
    case 2:
      return std::round(before * 100 + static_cast<double>(random() % 7)) / 100;
    case 3:
      return random() % 20 ? before : AnyDouble(random);
    case 4:
      return static_cast<double>(random() % 5000) * 4096;
    case 5:
      return before * 1.0000001;
    case 6:
      return static_cast<double>(static_cast<float>(before) + 0.1F);
    default:
      return AnyDouble(random);
  }
}

// The sum or the difference of two columns, as many of a node's series are of others.
void AddRelative(Rows& data, size_t rows, Random& random) {
  const size_t a = random() % data.columns * rows;
  const size_t b = random() % data.columns * rows;
  const double sign = random() % 2 ? 1 : -1;
  for (size_t r = 0; r < rows; ++r) {
    data.values.push_back(data.values[a + r] + sign * data.values[b + r]);
  }
}

Rows RandomRows(size_t rows, size_t columns, Random& random) {
  Rows data;
  Nanos time = static_cast<Nanos>(random() >> (1 + random() % 62)) * (random() % 2 ? 1 : -1);
  const uint64_t pace = random() % 4;
  for (size_t r = 0; r < rows; ++r) {
    data.times.push_back(time);
    const Nanos step = pace == 0   ? kSecond
                       : pace == 1 ? static_cast<Nanos>(random() % 2'000'000'000)
                       : pace == 2 ? static_cast<Nanos>(random() % 2)
                                   : static_cast<Nanos>(random() >> (8 + random() % 56));
    time = time > std::numeric_limits<Nanos>::max() - step ? time : time + step;
  }
  for (; data.columns < columns; ++data.columns) {
    if (data.columns > 0 && random() % 4 == 0) {
      AddRelative(data, rows, random);
      continue;
    }
    const uint64_t shape = random() % 9;
    double value = random() % 3 ? static_cast<double>(random() % 1'000'000) : AnyDouble(random);
    const bool gaps = random() % 8 == 0;
    for (size_t r = 0; r < rows; ++r) {
      data.values.push_back(gaps && random() % 3 == 0 ? std::nan("") : value);
      if (shape < 8) value = Next(value, shape, random);
    }
  }
  return data;
}

void ExpectSame(std::span<const double> got, const double* expected, size_t column) {
  ASSERT_EQ(std::memcmp(got.data(), expected, got.size_bytes()), 0) << "column " << column;
}

void ExpectComesBack(const Rows& data, BlockEncoder& encoder, Random& random) {
  const size_t rows = data.times.size();
  std::string bytes;
  const Status status =
      encoder.Encode(7, data.times, data.values.data(), data.columns, rows, bytes);
  ASSERT_TRUE(status.ok()) << status.message();
  const Result<Block> block = DecodeBlock(bytes);
  ASSERT_TRUE(block.ok()) << block.status().message();
  ASSERT_EQ(block->times, data.times);
  ASSERT_EQ(block->values.size(), data.values.size());
  for (size_t c = 0; c < data.columns; ++c) ExpectSame(block->Column(c), &data.values[c * rows], c);

  std::vector<bool> wanted(data.columns);
  for (size_t c = 0; c < data.columns; ++c) wanted[c] = random() % 16 == 0;
  const Result<Block> some = DecodeColumns(bytes, wanted);
  ASSERT_TRUE(some.ok()) << some.status().message();
  const auto plain = PlainBlock::Unpack(bytes);
  ASSERT_TRUE(plain.ok()) << plain.status().message();
  std::vector<double> column(rows);
  for (size_t c = 0, taken = 0; c < data.columns; ++c) {
    if (!wanted[c]) continue;
    ExpectSame(some->Column(taken++), &data.values[c * rows], c);
    ASSERT_TRUE((*plain)->Read(c, column).ok());
    ExpectSame(column, &data.values[c * rows], c);
  }
}

TEST(BlockProperty, WhateverGoesInComesOutBitForBit) {
  Random random(20261121);
  BlockEncoder encoder;
  for (int round = 0; round < 300; ++round) {
    const size_t rows = 1 + random() % (round % 3 == 0 ? 512 : 40);
    const size_t columns = random() % (round % 10 == 0 ? 1001 : 60);
    ExpectComesBack(RandomRows(rows, columns, random), encoder, random);
    if (HasFatalFailure()) FAIL() << "round " << round << ": " << rows << " x " << columns;
  }
}

TEST(BlockProperty, TheLargestBlockComesBack) {
  Random random(1);
  BlockEncoder encoder;
  ExpectComesBack(RandomRows(kMaxBlockRows, 300, random), encoder, random);
  ExpectComesBack(RandomRows(2, kMaxSeries, random), encoder, random);
}

TEST(BlockProperty, TimesThatRunBackwardsAreRefused) {
  Random random(2);
  BlockEncoder encoder;
  for (int round = 0; round < 50; ++round) {
    Rows data = RandomRows(2 + random() % 100, 3, random);
    const size_t at = 1 + random() % (data.times.size() - 1);
    if (data.times[at - 1] == std::numeric_limits<Nanos>::min()) continue;
    data.times[at] = data.times[at - 1] - 1;
    std::string bytes;
    const Status status =
        encoder.Encode(7, data.times, data.values.data(), 3, data.times.size(), bytes);
    EXPECT_EQ(status.code(), Code::kInvalid);
    EXPECT_EQ(bytes, "");
  }
}

// Bytes of a block of `rows` rows of one column and of as many of two columns, the second of which
// is made of the first.
size_t BytesOfRelative(double (*relative)(double)) {
  Random random(3);
  std::normal_distribution<double> step(0, 300);
  constexpr size_t kRows = 128;
  std::vector<Nanos> times;
  std::vector<double> values(2 * kRows);
  double value = 1e6;
  for (size_t r = 0; r < kRows; ++r) {
    times.push_back(static_cast<Nanos>(r) * kSecond);
    value += std::round(step(random));
    values[r] = value;
    values[kRows + r] = relative(value);
  }
  BlockEncoder encoder;
  std::string one, two;
  EXPECT_TRUE(encoder.Encode(7, times, values.data(), 1, kRows, one).ok());
  EXPECT_TRUE(encoder.Encode(7, times, values.data(), 2, kRows, two).ok());
  EXPECT_GT(one.size(), 100u);
  return two.size() - one.size();
}

TEST(BlockProperty, WhatASiblingTellsIsNotSaidAgain) {
  EXPECT_LT(BytesOfRelative([](double v) { return v; }), 12u);
  EXPECT_LT(BytesOfRelative([](double v) { return 4096 * v; }), 12u);
  EXPECT_LT(BytesOfRelative([](double v) { return 5e6 - v; }), 16u);
  EXPECT_LT(BytesOfRelative([](double v) { return v / 100; }), 12u);
}

}  // namespace
}  // namespace sonde::series_block_property_test
