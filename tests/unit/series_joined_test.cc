// Joined blocks: rows of many nodes in one block come apart again as they were.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "series/block/joined.h"
#include "series/store/store.h"

namespace sonde::series_joined_test {
namespace {

constexpr size_t kColumns = 40;

std::string OneBlock(uint32_t node, std::vector<Nanos> times, uint64_t schema = 7,
                     size_t columns = kColumns) {
  std::vector<double> values;
  for (size_t c = 0; c < columns; ++c) {
    for (size_t r = 0; r < times.size(); ++r) {
      const double value = static_cast<double>(c * 1000 + node * 3 + r);
      values.push_back(c == 5 ? std::nan("") : c == 6 ? value / 7 : value);
    }
  }
  std::string bytes;
  BlockEncoder encoder;
  EXPECT_TRUE(encoder.Encode(schema, times, values.data(), columns, times.size(), bytes).ok());
  return bytes;
}

JoinedEntry Entry(uint32_t node, uint64_t sequence) {
  JoinedEntry entry;
  entry.node = node;
  entry.group = node % 2 == 0 ? "os" : "task+8";
  entry.sequence = sequence;
  entry.first = sequence - 1;
  entry.samples = 90 + node;
  entry.reasons = 4;
  entry.stored = 1000 + node;
  return entry;
}

struct Joined {
  std::vector<JoinedEntry> entries;
  std::vector<std::string> blocks;
  std::string bytes;
};

Joined JoinSome(size_t count) {
  Joined all;
  for (uint32_t node = 0; node < count; ++node) {
    // Later nodes may end earlier, and some have more than one row.
    const Nanos time = (5000 - node) * kSecond;
    all.entries.push_back(Entry(node, 3 + node));
    all.blocks.push_back(OneBlock(
        node, node % 5 == 0 ? std::vector<Nanos>{time, time + 1} : std::vector<Nanos>{time}));
  }
  const std::vector<std::string_view> views(all.blocks.begin(), all.blocks.end());
  BlockEncoder encoder;
  auto bytes = JoinBlocks(all.entries, views, encoder);
  EXPECT_TRUE(bytes.ok()) << bytes.status().message();
  if (bytes.ok()) all.bytes = *std::move(bytes);
  return all;
}

TEST(Joined, EachBlockComesBackBitForBit) {
  const Joined made = JoinSome(100);
  const auto joined = ReadJoined(made.bytes);
  ASSERT_TRUE(joined.ok()) << joined.status().message();
  ASSERT_EQ(joined->entries.size(), 100u);
  const auto all = DecodeJoined(*joined);
  ASSERT_TRUE(all.ok());
  BlockEncoder encoder;
  for (size_t i = 0; i < 100; ++i) {
    const JoinedEntry& entry = joined->entries[i];
    EXPECT_EQ(entry.node, i);
    EXPECT_EQ(entry.group, made.entries[i].group);
    EXPECT_EQ(entry.sequence, 3 + i);
    EXPECT_EQ(entry.first, 2 + i);
    EXPECT_EQ(entry.samples, 90 + i);
    EXPECT_EQ(entry.reasons, 4u);
    EXPECT_EQ(entry.stored, 1000 + i);
    EXPECT_EQ(*BlockOfEntry(*joined, *all, i, encoder), made.blocks[i]);
  }
}

TEST(Joined, TakesFewerBytesThanTheBlocksApart) {
  const Joined made = JoinSome(100);
  size_t apart = 0;
  for (const std::string& block : made.blocks) apart += block.size();
  EXPECT_LT(made.bytes.size(), apart / 2);
}

TEST(Joined, BlocksOfAnotherSchemaAreNotJoined) {
  const std::string one = OneBlock(0, {1});
  const std::string other = OneBlock(1, {1}, 8);
  const std::string narrow = OneBlock(1, {1}, 7, kColumns - 1);
  BlockEncoder encoder;
  EXPECT_FALSE(JoinBlocks({Entry(0, 1), Entry(1, 1)}, {{one, other}}, encoder).ok());
  EXPECT_FALSE(JoinBlocks({Entry(0, 1), Entry(1, 1)}, {{one, narrow}}, encoder).ok());
  const std::string damaged = one.substr(0, one.size() - 1);
  EXPECT_FALSE(JoinBlocks({Entry(0, 1), Entry(1, 1)}, {{one, damaged}}, encoder).ok());
}

TEST(Joined, WhateverByteIsWrongIsFound) {
  const std::string bytes = JoinSome(3).bytes;
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string wrong = bytes;
    wrong[i] = static_cast<char>(wrong[i] ^ 0x10);
    const auto joined = ReadJoined(wrong);
    EXPECT_FALSE(joined.ok() && DecodeJoined(*joined).ok()) << i;
    const auto shorter = ReadJoined(std::string_view(bytes).substr(0, i));
    EXPECT_FALSE(shorter.ok() && DecodeJoined(*shorter).ok()) << i;
  }
  EXPECT_FALSE(ReadJoined(bytes + "x").ok() && DecodeJoined(*ReadJoined(bytes + "x")).ok());
}

TEST(Joined, ALaterVersionIsNamed) {
  std::string later = JoinSome(3).bytes;
  later[0] = 2;
  EXPECT_EQ(ReadJoined(later).status().code(), Code::kUnsupported);
}

}  // namespace
}  // namespace sonde::series_joined_test
