// What is no block, or one made to mislead, is refused.
#include <gtest/gtest.h>
#include <zstd.h>

#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "core/bytes.h"
#include "series/block/block.h"
#include "series/block/format.h"

namespace sonde::series_block_hostile_test {
namespace {

using namespace block_format;

constexpr Nanos kStart = 1'795'232'000 * kSecond;

std::vector<Nanos> Ticks(size_t rows) {
  std::vector<Nanos> times;
  for (size_t r = 0; r < rows; ++r) times.push_back(kStart + static_cast<Nanos>(r) * kSecond);
  return times;
}

// A column of every kind and scale, some of them made of others, and gaps.
std::string SmallBlock() {
  constexpr size_t kRows = 20;
  std::vector<double> values;
  uint32_t noise = 1;
  for (size_t r = 0; r < kRows; ++r) {
    noise = noise * 1664525 + 1013904223;
    values.push_back(noise % 100'000);
  }
  for (size_t r = 0; r < kRows; ++r) values.push_back(values[r] * 4096 + 1e9);
  for (size_t r = 0; r < kRows; ++r) values.push_back(42);
  for (size_t r = 0; r < kRows; ++r) values.push_back(r % 3 == 0 ? std::nan("") : values[r] / 100);
  for (size_t r = 0; r < kRows; ++r) values.push_back(values[r] * M_PI);
  BlockEncoder encoder;
  std::string bytes;
  EXPECT_TRUE(encoder.Encode(77, Ticks(kRows), values.data(), 5, kRows, bytes).ok());
  return bytes;
}

struct Content {
  uint16_t rows = 4;
  uint32_t columns = 1;
  std::string plain;
  std::string low;
  uint32_t plain_size = 0;  // 0: as it is
};

// A block with good checksums around whatever is in it.
std::string Wrap(const Content& content) {
  std::string body(ZSTD_compressBound(content.plain.size()), '\0');
  body.resize(
      ZSTD_compress(body.data(), body.size(), content.plain.data(), content.plain.size(), 1));
  const auto frame_size = static_cast<uint32_t>(body.size());
  body += content.low;
  const auto plain_size =
      content.plain_size != 0 ? content.plain_size : static_cast<uint32_t>(content.plain.size());
  std::string bytes;
  WriteHeader({77, content.rows, content.columns, kStart, kStart + 3 * kSecond, plain_size,
               frame_size, Crc32c(body)},
              bytes);
  return bytes + body;
}

// Every way of reading agrees on whether it is good.
Code Read(const std::string& bytes) {
  const Result<Block> all = DecodeBlock(bytes);
  if (all.ok()) {
    for (size_t c = 0; c < all->columns(); ++c) {
      std::vector<bool> wanted(all->columns());
      wanted[c] = true;
      EXPECT_TRUE(DecodeColumns(bytes, wanted).ok());
    }
    EXPECT_TRUE(PlainBlock::Unpack(bytes).ok());
  }
  return all.status().code();
}

// Times of four rows, a second apart.
std::string FourTimes() {
  std::string plain;
  ByteWriter out(plain);
  out.Signed(kSecond);
  out.Signed(0);
  out.Signed(0);
  return plain;
}

// A block of four rows: kinds and scales, then what `rest` writes.
template <typename F>
Code ReadColumns(std::string_view kinds, std::string_view scales, std::string_view low,
                 const F& rest) {
  Content content;
  content.columns = static_cast<uint32_t>(kinds.size());
  content.plain = FourTimes();
  ByteWriter out(content.plain);
  out.Raw(kinds);
  out.Raw(scales);
  rest(out);
  content.low = low;
  return Read(Wrap(content));
}

TEST(BlockHostile, WhatCannotBeABlockIsNotWritten) {
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

TEST(BlockHostile, EveryFlippedBitIsFound) {
  const std::string good = SmallBlock();
  ASSERT_EQ(Read(good), Code::kOk);
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_FALSE(DecodeBlock(bad).ok()) << "bit " << bit;
    EXPECT_FALSE(PlainBlock::Unpack(bad).ok()) << "bit " << bit;
  }
}

TEST(BlockHostile, EveryTruncationAndEveryTailIsFound) {
  const std::string good = SmallBlock();
  for (size_t n = 0; n < good.size(); ++n) {
    EXPECT_EQ(DecodeBlock(good.substr(0, n)).status().code(), Code::kCorrupt) << n;
  }
  EXPECT_EQ(DecodeBlock(good + "x").status().code(), Code::kCorrupt);
  EXPECT_EQ(DecodeBlock(good + good).status().code(), Code::kCorrupt);
}

TEST(BlockHostile, OtherVersionsAreNamedAsSuch) {
  std::string bytes = SmallBlock();
  bytes[2] = 9;
  EXPECT_EQ(ReadBlockInfo(bytes).status().code(), Code::kCorrupt) << "only that byte is wrong";
  bytes[3] = 1;
  EXPECT_EQ(DecodeBlock(bytes).status().code(), Code::kUnsupported);
  EXPECT_EQ(PlainBlock::Unpack(bytes).status().code(), Code::kUnsupported);
  const Status newer = ReadBlockInfo(bytes).status();
  EXPECT_EQ(newer.code(), Code::kUnsupported);
  EXPECT_NE(newer.message().find("use a newer Sonde"), std::string::npos) << newer.message();
  bytes[2] = 1;
  const Status older = ReadBlockInfo(bytes).status();
  EXPECT_EQ(older.code(), Code::kUnsupported);
  EXPECT_NE(older.message().find("version 1"), std::string::npos) << older.message();
}

// A header whose checksum is right but that promises the impossible.
TEST(BlockHostile, LengthsAreNotTrusted) {
  Content good;
  good.plain = FourTimes() + std::string("\0\0\x0e", 3);
  const auto with = [&](uint16_t rows, uint32_t columns, size_t plain) {
    Content content = good;
    content.rows = rows;
    content.columns = columns;
    content.plain_size = static_cast<uint32_t>(plain);
    return DecodeBlock(Wrap(content)).status().code();
  };
  const size_t plain = good.plain.size();
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
  good.low = "x";
  EXPECT_EQ(with(4, 1, plain), Code::kCorrupt);
}

// Sixty-four MiB of zeros in a frame of a few KiB.
TEST(BlockHostile, AFrameUnfoldsToNoMoreThanItsRowsCanTake) {
  Content bomb;
  bomb.plain = FourTimes() + std::string(size_t{64} << 20, '\0');
  const std::string bytes = Wrap(bomb);
  ASSERT_LT(bytes.size(), 10'000u);
  EXPECT_EQ(Read(bytes), Code::kCorrupt);
  bomb.plain_size = 10;  // what the frame itself states is not taken for true either
  EXPECT_EQ(Read(Wrap(bomb)), Code::kCorrupt);
}

TEST(BlockHostile, OnlyKnownKindsAndScalesAreRead) {
  const auto constant = [](ByteWriter& out) { out.Signed(7); };
  EXPECT_EQ(ReadColumns(std::string_view("\0", 1), std::string_view("\0", 1), "", constant),
            Code::kOk);
  for (int scale = 0; scale < 256; ++scale) {
    const char byte = static_cast<char>(scale);
    const bool known = scale <= 61 || (scale >= 65 && scale <= 73) || (scale >= 128 && scale < 192);
    EXPECT_EQ(ReadColumns(std::string_view("\0", 1), {&byte, 1}, "", constant),
              known ? Code::kOk : Code::kCorrupt)
        << scale;
  }
  for (int kind = 5; kind < 16; ++kind) {
    const char byte = static_cast<char>(kind);
    EXPECT_EQ(ReadColumns({&byte, 1}, std::string_view("\0", 1), "", constant), Code::kCorrupt);
  }
  // A constant with gaps.
  EXPECT_EQ(ReadColumns("\x10", std::string_view("\0", 1), "", constant), Code::kCorrupt);
}

TEST(BlockHostile, LowBitsAreAsManyAsTheResiduals) {
  const auto read = [](uint8_t low_bits, std::string_view low) {
    return ReadColumns("\x01", std::string_view("\0", 1), low, [&](ByteWriter& out) {
      out.Fixed(low_bits);
      out.Signed(100);
      for (int i = 0; i < 3; ++i) out.Varint(1);
    });
  };
  EXPECT_EQ(read(0, ""), Code::kOk);
  EXPECT_EQ(read(8, "abc"), Code::kOk);
  EXPECT_EQ(read(8, "ab"), Code::kCorrupt);
  EXPECT_EQ(read(8, "abcd"), Code::kCorrupt);
  EXPECT_EQ(read(56, std::string(21, 'x')), Code::kOk);
  EXPECT_EQ(read(57, std::string(22, 'x')), Code::kCorrupt);
  EXPECT_EQ(read(255, std::string(96, 'x')), Code::kCorrupt);
}

TEST(BlockHostile, ReferencesLeadBackToColumnsWithoutGaps) {
  const std::string_view scales("\0\0", 2);
  const auto read = [&](std::string_view kinds, uint64_t back, bool gaps) {
    return ReadColumns(kinds, scales, "", [&](ByteWriter& out) {
      if (gaps) out.Fixed<uint8_t>(0);
      out.Signed(7);
      out.Signed(8);
      out.Varint(back << 1);
      if (!gaps) return;
      out.Fixed<uint8_t>(1);  // the first row is missing
      for (int i = 0; i < 2; ++i) out.Varint(0);
    });
  };
  EXPECT_EQ(read(std::string_view("\0\x20", 2), 0, false), Code::kOk);
  EXPECT_EQ(read(std::string_view("\0\x20", 2), 1, false), Code::kCorrupt);
  EXPECT_EQ(read(std::string_view("\0\x20", 2), UINT64_MAX >> 1, false), Code::kCorrupt);
  EXPECT_EQ(read("\x11\x20", 0, true), Code::kCorrupt);
  // Three references there are not.
  EXPECT_EQ(read(std::string_view("\0\x60", 2), 0, false), Code::kCorrupt);
}

// Each column is twice the one before: the n-th is the sum of 2^n.
TEST(BlockHostile, AColumnIsTheSumOfFewOthers) {
  const auto read = [](size_t doublings) {
    const std::string kinds = std::string(1, '\0') + std::string(doublings, '\x40');
    return ReadColumns(kinds, std::string(kinds.size(), '\0'), "", [&](ByteWriter& out) {
      out.Signed(1);
      for (size_t i = 0; i < doublings; ++i) {
        out.Signed(0);
        out.Varint(0);
        out.Varint(0);
      }
    });
  };
  EXPECT_EQ(read(1), Code::kOk);
  EXPECT_EQ(read(3), Code::kOk);       // 15 summands
  EXPECT_EQ(read(4), Code::kCorrupt);  // 31
  EXPECT_EQ(read(60), Code::kCorrupt);
}

}  // namespace
}  // namespace sonde::series_block_hostile_test
