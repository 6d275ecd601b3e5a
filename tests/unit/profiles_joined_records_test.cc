// Records of joined blocks in a database: which of them are decoded, and how often.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <leveldb/db.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "profiles/disk/leveldb_env.h"
#include "profiles/records/joined_records.h"
#include "profiles/records/keys.h"
#include "series/block/joined.h"
#include "temp_dir.h"

namespace sonde::profiles_joined_records_test {
namespace {

constexpr uint32_t kNodes = 40;
constexpr size_t kColumns = 30;

double ValueOf(uint32_t node, size_t column) { return node * 100.0 + static_cast<double>(column); }

std::string JoinNodes() {
  std::vector<std::string> blocks;
  std::vector<JoinedEntry> entries;
  BlockEncoder encoder;
  for (uint32_t node = 0; node < kNodes; ++node) {
    std::vector<double> values;
    for (size_t c = 0; c < kColumns; ++c) values.push_back(ValueOf(node, c));
    const Nanos time = kSecond + node;
    std::string bytes;
    EXPECT_TRUE(encoder.Encode(7, {&time, 1}, values.data(), kColumns, 1, bytes).ok());
    blocks.push_back(std::move(bytes));
    JoinedEntry entry;
    entry.node = node;
    entry.group = "os";
    entry.sequence = entry.first = 1;
    entries.push_back(std::move(entry));
  }
  const std::vector<std::string_view> views(blocks.begin(), blocks.end());
  return *JoinBlocks(std::move(entries), views, encoder);
}

TEST(JoinedCache, DecodesARecordOnceForAllItsNodes) {
  const TempDir directory;
  leveldb::DB* opened = nullptr;
  leveldb::Options options;
  options.create_if_missing = true;
  ASSERT_TRUE(leveldb::DB::Open(options, directory.path() + "/db", &opened).ok());
  const std::unique_ptr<leveldb::DB> db(opened);
  const std::string bytes = JoinNodes();
  const std::string at = keys::Joined("profile", bytes);
  ASSERT_TRUE(db->Put({}, at, bytes).ok());
  JoinedCache cache(*db);
  for (uint32_t node = 0; node < kNodes; ++node) {
    const auto block = cache.Read(at, node);
    ASSERT_TRUE(block.ok());
    EXPECT_EQ(block->times.at(0), kSecond + node);
    for (size_t c = 0; c < kColumns; ++c) EXPECT_EQ(block->Column(c)[0], ValueOf(node, c));
  }
  EXPECT_EQ(cache.decoded(), 1u);
  EXPECT_FALSE(cache.Read(at, kNodes).ok()) << "there is no such entry";
  EXPECT_FALSE(cache.Read(at + "x", 0).ok()) << "there is no such record";
}

TEST(JoinedRecord, GivesTheColumnsThatAreAskedForAlsoWhenTheyChange) {
  auto record = JoinedRecord::Read("at", JoinNodes());
  ASSERT_TRUE(record.ok());
  for (const std::vector<size_t>& wanted : {std::vector<size_t>{17}, {3, 4, 29}, {17}}) {
    std::vector<std::pair<size_t, size_t>> columns;
    columns.reserve(wanted.size());
    for (const size_t column : wanted) columns.emplace_back(column, 0);
    for (uint32_t node = 0; node < kNodes; ++node) {
      const auto block = record->Columns(node, columns);
      ASSERT_TRUE(block.ok());
      ASSERT_EQ(block->columns(), wanted.size());
      for (size_t i = 0; i < wanted.size(); ++i) {
        EXPECT_EQ(block->Column(i)[0], ValueOf(node, wanted[i]));
      }
    }
  }
  EXPECT_FALSE(record->Columns(0, {{kColumns, 0}}).ok()) << "there are fewer columns";
}

}  // namespace
}  // namespace sonde::profiles_joined_records_test
