#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "series/block.h"
#include "series/block_format.h"

namespace sonde {
namespace {

constexpr Nanos kStart = 1'795'232'000 * kSecond;

std::vector<Nanos> Ticks(size_t rows) {
  std::vector<Nanos> times;
  for (size_t r = 0; r < rows; ++r) times.push_back(kStart + static_cast<Nanos>(r) * kSecond);
  return times;
}

std::string Encode(const std::vector<Nanos>& times, const std::vector<double>& values) {
  std::string bytes;
  BlockEncoder encoder;
  const Status status =
      encoder.Encode(77, times, values.data(), values.size() / times.size(), times.size(), bytes);
  EXPECT_TRUE(status.ok()) << status.message();
  return bytes;
}

// Bit for bit: NaN is not equal to itself and -0 is equal to 0.
void ExpectComesBack(const std::vector<Nanos>& times, const std::vector<double>& values) {
  const Result<Block> block = DecodeBlock(Encode(times, values));
  ASSERT_TRUE(block.ok()) << block.status().message();
  EXPECT_EQ(block->schema_id, 77u);
  EXPECT_EQ(block->times, times);
  ASSERT_EQ(block->values.size(), values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(std::bit_cast<uint64_t>(block->values[i]), std::bit_cast<uint64_t>(values[i]))
        << "value " << i << ": " << values[i] << " came back as " << block->values[i];
  }
}

// Every column by itself is what it is among all.
void ExpectColumnsComeAlone(const std::vector<Nanos>& times, const std::vector<double>& values) {
  const std::string bytes = Encode(times, values);
  const size_t columns = values.size() / times.size();
  for (size_t c = 0; c < columns; ++c) {
    std::vector<bool> wanted(columns);
    wanted[c] = true;
    const Result<Block> block = DecodeColumns(bytes, wanted);
    ASSERT_TRUE(block.ok()) << block.status().message();
    ASSERT_EQ(block->values.size(), times.size());
    EXPECT_EQ(
        std::memcmp(block->values.data(), &values[c * times.size()], times.size() * sizeof(double)),
        0)
        << "column " << c;
  }
  const auto plain = PlainBlock::Unpack(bytes);
  ASSERT_TRUE(plain.ok()) << plain.status().message();
  ASSERT_EQ((*plain)->columns(), columns);
  std::vector<double> column(times.size());
  for (size_t c = columns; c-- > 0;) {
    ASSERT_TRUE((*plain)->Read(c, column).ok());
    EXPECT_EQ(std::memcmp(column.data(), &values[c * times.size()], times.size() * sizeof(double)),
              0)
        << "column " << c;
  }
}

TEST(Block, ExtremeValuesComeBackBitForBit) {
  using Limits = std::numeric_limits<double>;
  const std::vector<double> values = {0.0,
                                      -0.0,
                                      1.0,
                                      Limits::infinity(),
                                      -Limits::infinity(),
                                      Limits::quiet_NaN(),
                                      std::bit_cast<double>(uint64_t{0x7ff8000000000001}),
                                      std::bit_cast<double>(uint64_t{0xfff8000000000000}),
                                      std::bit_cast<double>(uint64_t{0x7ff4000000000000}),
                                      Limits::denorm_min(),
                                      -Limits::denorm_min(),
                                      Limits::max(),
                                      Limits::lowest(),
                                      9007199254740993.0,
                                      4611686018427387904.0,
                                      -9223372036854775808.0,
                                      1e300,
                                      0.1,
                                      -0.001};
  ExpectComesBack(Ticks(values.size()), values);
  ExpectColumnsComeAlone(Ticks(1), values);
  // Each alone in a column, and each as the odd one out among integers and among decimals.
  for (const double odd : values) {
    ExpectComesBack(Ticks(3), {odd, odd, odd, 1, odd, 3, 0.25, 0.5, odd, odd, 1e9, 2e9});
  }
}

TEST(Block, MissingValuesStayMissingInEveryColumn) {
  const double missing = std::nan("");
  const std::vector<double> values = {missing, missing, missing, missing, 1,       missing,
                                      3,       4,       missing, 0.01,    missing, 0.02,
                                      missing, M_PI,    missing, M_E};
  ExpectComesBack(Ticks(4), values);
}

// A column in the shape of something that is measured, or of nothing that should be.
std::vector<double> RandomColumn(size_t rows, std::mt19937_64& random) {
  const uint64_t shape = random() % 10;
  const double unit = std::pow(10.0, static_cast<double>(random() % 10));
  const bool gaps = random() % 4 == 0;
  std::vector<double> column;
  int64_t counter = static_cast<int64_t>(random() >> (random() % 63));
  for (size_t r = 0; r < rows; ++r) {
    counter += static_cast<int64_t>(random() % 1000) - (shape % 2 == 0 ? 0 : 500);
    double v = 0;
    if (shape < 3)
      v = static_cast<double>(counter);
    else if (shape < 5)
      v = static_cast<double>(counter % 100'000) / unit;
    else if (shape == 5)
      v = static_cast<double>(counter % 1000) * 4096;
    else if (shape == 6)
      v = std::sin(static_cast<double>(r));
    else if (shape == 7)
      v = std::bit_cast<double>(random());
    else if (shape == 8)
      v = 42.5;
    else
      v = static_cast<double>(static_cast<float>(counter) / 3);
    column.push_back(gaps && random() % 3 == 0 ? std::nan("") : v);
  }
  return column;
}

TEST(Block, RandomColumnsComeBackBitForBit) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 400; ++round) {
    const size_t rows = 1 + random() % (round % 20 == 0 ? kMaxBlockRows : 40);
    std::vector<double> values;
    for (uint64_t c = random() % 12; c > 0; --c) {
      const std::vector<double> column = RandomColumn(rows, random);
      values.insert(values.end(), column.begin(), column.end());
    }
    std::vector<Nanos> times = Ticks(rows);
    for (Nanos& t : times) t += static_cast<Nanos>(random() % 1000);
    ExpectComesBack(times, values);
    if (HasFatalFailure()) return;
  }
}

TEST(Block, ColumnsMayLieApartAndTimesMayRepeat) {
  const std::vector<Nanos> times = {-5, 7, 7};
  const std::vector<double> values = {1, 2, 3, -1, -1, 4, 5, 6};
  std::string bytes = "before";
  BlockEncoder encoder;
  ASSERT_TRUE(encoder.Encode(1, times, values.data(), 2, 5, bytes).ok());
  const Result<Block> block = DecodeBlock(std::string_view(bytes).substr(6));
  ASSERT_TRUE(block.ok()) << block.status().message();
  EXPECT_EQ(block->times, times);
  EXPECT_EQ(block->values, (std::vector<double>{1, 2, 3, 4, 5, 6}));
}

TEST(Block, OneEncoderWritesTheSameBytesEachTime) {
  std::mt19937_64 random(2);
  const std::vector<double> values = RandomColumn(64, random);
  const std::vector<Nanos> times = Ticks(64);
  BlockEncoder encoder;
  std::string first;
  std::string second;
  ASSERT_TRUE(encoder.Encode(1, times, values.data(), 1, 64, first).ok());
  ASSERT_TRUE(encoder.Encode(1, times, values.data(), 1, 64, second).ok());
  EXPECT_EQ(first, second);
}

// Blocks on disk outlive releases: this one was written by version 1.
TEST(Block, AWrittenBlockIsReadForever) {
  const std::string hex =
      "536201004d0000000000000004000400000000006a11fef1e918005e3ac4fef1e9183c00000034b497315627d8f4"
      "28b52ffd203ce1010080a8d6b9070000000202010001423f0e0a0a0a1432320000b0b4a1c4eafe90898001ddd6fe"
      "9299bcb103b7eea8c9849b8f0f98decdc7abe0e6ae8301";
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  const Result<Block> block = DecodeBlock(bytes);
  ASSERT_TRUE(block.ok()) << block.status().message();
  EXPECT_EQ(block->times, Ticks(4));
  EXPECT_EQ(block->values, (std::vector<double>{7, 7, 7, 7, 10, 20, 40, 80, 0.25, 0.5, 0.75, 1.0,
                                                M_PI, M_E, M_SQRT2, -1e-300}));
}

TEST(Block, TheHeaderIsReadWithoutTheRest) {
  const std::string bytes = Encode(Ticks(4), std::vector<double>(12, 1.5));
  const Result<BlockInfo> info = ReadBlockInfo(bytes);
  ASSERT_TRUE(info.ok());
  EXPECT_EQ(info->schema_id, 77u);
  EXPECT_EQ(info->rows, 4u);
  EXPECT_EQ(info->columns, 3u);
  EXPECT_EQ(info->first, kStart);
  EXPECT_EQ(info->last, kStart + 3 * kSecond);
}

TEST(Block, WhatCannotBeABlockIsRefused) {
  BlockEncoder encoder;
  std::string bytes;
  const double value = 1;
  EXPECT_EQ(encoder.Encode(1, {}, &value, 1, 1, bytes).code(), Code::kInvalid);
  const std::vector<Nanos> backwards = {2, 1};
  EXPECT_EQ(encoder.Encode(1, backwards, &value, 0, 2, bytes).code(), Code::kInvalid);
  const std::vector<Nanos> many(kMaxBlockRows + 1);
  EXPECT_EQ(encoder.Encode(1, many, &value, 0, many.size(), bytes).code(), Code::kInvalid);
  EXPECT_EQ(bytes, "");
}

TEST(Block, EveryFlippedBitIsFound) {
  std::mt19937_64 random(3);
  const std::vector<double> values = RandomColumn(40, random);
  const std::string good = Encode(Ticks(20), values);
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_FALSE(DecodeBlock(bad).ok()) << "bit " << bit;
  }
}

TEST(Block, EveryTruncationAndEveryTailIsFound) {
  const std::string good = Encode(Ticks(20), std::vector<double>(40, 3));
  for (size_t n = 0; n < good.size(); ++n) {
    EXPECT_EQ(DecodeBlock(good.substr(0, n)).status().code(), Code::kCorrupt) << n;
  }
  EXPECT_EQ(DecodeBlock(good + "x").status().code(), Code::kCorrupt);
  EXPECT_EQ(DecodeBlock(good + good).status().code(), Code::kCorrupt);
}

TEST(Block, ANewerVersionIsNamedAsSuch) {
  std::string bytes = Encode(Ticks(2), {1, 2});
  bytes[2] = 9;
  EXPECT_EQ(DecodeBlock(bytes).status().code(), Code::kUnsupported);
  EXPECT_EQ(ReadBlockInfo(bytes).status().code(), Code::kUnsupported);
}

TEST(Block, ColumnsComeAloneWhateverStandsBefore) {
  const double missing = std::nan("");
  std::vector<double> values;
  std::mt19937_64 random(5);
  constexpr size_t kRows = 21, kColumns = 60;
  for (size_t c = 0; c < kColumns; ++c) {
    for (size_t r = 0; r < kRows; ++r) {
      const auto noise = static_cast<double>(random() % 100'000'007);
      const double kinds[] = {42, static_cast<double>(r * c), noise * M_PI, noise / 1000,
                              r % 3 == 0 ? missing : noise};
      values.push_back(kinds[c % std::size(kinds)]);
    }
  }
  ExpectColumnsComeAlone(Ticks(kRows), values);
  const std::string bytes = Encode(Ticks(kRows), values);
  EXPECT_EQ(DecodeColumns(bytes, std::vector<bool>(kColumns))->values.size(), 0u);
  EXPECT_EQ(DecodeColumns(bytes, std::vector<bool>(kColumns, true))->values.size(), values.size());
  EXPECT_EQ(DecodeColumns(bytes, std::vector<bool>(kColumns + 1)).status().code(), Code::kInvalid);
}

TEST(Block, TheChecksumIsCrc32c) {
  EXPECT_EQ(block_format::Crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(block_format::Crc32cByTables("123456789"), 0xe3069283u);
  EXPECT_EQ(block_format::Crc32c(""), 0u);
  // RFC 3720, B.4: 32 bytes of zeros, of ones, and rising.
  std::string rising;
  for (char c = 0; c < 32; ++c) rising.push_back(c);
  EXPECT_EQ(block_format::Crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(block_format::Crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(block_format::Crc32c(rising), 0x46dd794eu);
}

// A header whose checksum is right but that promises the impossible.
TEST(Block, LengthsAreNotTrusted) {
  const std::string good = Encode(Ticks(4), {1, 2, 3, 4});
  const std::string_view frame = std::string_view(good).substr(block_format::kHeaderSize);
  const auto with = [&](uint16_t rows, uint32_t columns, uint32_t plain) {
    std::string bytes;
    block_format::WriteHeader(
        {77, rows, columns, kStart, kStart + 3 * kSecond, plain, block_format::Crc32c(frame)},
        bytes);
    return DecodeBlock(bytes.append(frame)).status().code();
  };
  const auto plain = block_format::ReadHeader(good)->plain_size;
  EXPECT_EQ(with(4, 1, plain), Code::kOk);
  EXPECT_EQ(with(3, 1, plain), Code::kCorrupt);
  EXPECT_EQ(with(5, 1, plain), Code::kCorrupt);
  EXPECT_EQ(with(4, 2, plain), Code::kCorrupt);
  EXPECT_EQ(with(4, 0, plain), Code::kCorrupt);
  EXPECT_EQ(with(0, 1, plain), Code::kCorrupt);
  EXPECT_EQ(with(65535, 1, plain), Code::kCorrupt);
  EXPECT_EQ(with(4, UINT32_MAX, plain), Code::kCorrupt);
  EXPECT_EQ(with(1024, 65536, plain), Code::kCorrupt);
  EXPECT_EQ(with(4, 1, plain + 1), Code::kCorrupt);
  EXPECT_EQ(with(4, 1, UINT32_MAX), Code::kCorrupt);
}

TEST(Block, QuietCountersTakeLessThanATenthOfAByte) {
  std::vector<double> values;
  for (size_t c = 0; c < 100; ++c) {
    for (size_t r = 0; r < 128; ++r) values.push_back(static_cast<double>(1000 * c + 100 * r));
  }
  EXPECT_LT(Encode(Ticks(128), values).size(), values.size() / 10);
}

}  // namespace
}  // namespace sonde
