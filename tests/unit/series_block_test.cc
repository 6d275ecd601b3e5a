#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "series/block/block.h"
#include "series/block/format.h"

namespace sonde::series_block_test {
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

// Blocks on disk outlive releases: this one was written by version 2.
TEST(Block, AWrittenBlockIsReadForever) {
  const std::string hex =
      "536202004d0000000000000010000500000000006a11fef1e91800d67b8f01f2e918a600000063000000f1a0"
      "946aed9a6cfb28b52ffd20a6d50200e40480a8d6b907000120009303000c0042800b98b20800000e11110032"
      "3200cdb2b8d087f8c8dafc018199a6eb8d89a69c83013d022e1f0d0c4419022512035a272900003200fbcdb3"
      "a9e4edb3c7f9010300e0827ceb5e78802261ce97d36c1e543344c792de36ae9393181cf34602";
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  constexpr size_t kRows = 16;
  std::vector<double> values;
  uint32_t noise = 1;
  for (size_t r = 0; r < kRows; ++r) {
    noise = noise * 1664525 + 1013904223;
    values.push_back(noise % 100'000);
  }
  for (size_t r = 0; r < kRows; ++r) values.push_back(values[r] * 4096);
  for (size_t r = 0; r < kRows; ++r) values.push_back(7);
  for (size_t r = 0; r < kRows; ++r) {
    values.push_back(r % 4 == 0 ? std::nan("") : 0.25 * static_cast<double>(r));
  }
  for (size_t r = 0; r < kRows; ++r) values.push_back(r % 2 != 0 ? M_PI : -1e-300);
  const Result<Block> block = DecodeBlock(bytes);
  ASSERT_TRUE(block.ok()) << block.status().message();
  EXPECT_EQ(block->times, Ticks(kRows));
  ASSERT_EQ(block->values.size(), values.size());
  EXPECT_EQ(std::memcmp(block->values.data(), values.data(), values.size() * sizeof(double)), 0);
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

TEST(Block, QuietCountersTakeLessThanATenthOfAByte) {
  std::vector<double> values;
  for (size_t c = 0; c < 100; ++c) {
    for (size_t r = 0; r < 128; ++r) values.push_back(static_cast<double>(1000 * c + 100 * r));
  }
  EXPECT_LT(Encode(Ticks(128), values).size(), values.size() / 10);
}

}  // namespace
}  // namespace sonde::series_block_test
