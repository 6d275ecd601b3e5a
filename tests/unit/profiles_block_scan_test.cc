// Blocks of a time are found among those of other times, stream by stream.
#include <gtest/gtest.h>
#include <leveldb/db.h>

#include <algorithm>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "profiles/reading/block_scan.h"
#include "profiles/records/keys.h"
#include "tests/unit/profiles_fixture.h"

namespace sonde::profiles_block_scan_test {
namespace {

constexpr char kProfile[] = "frost.123.0.1790000000000000000";

using Key = std::tuple<uint32_t, std::string, uint64_t>;

struct Stored {
  Key key;
  Nanos first;
  Nanos last;
};

// Streams of several nodes, groups and writers; some sequences are missing, as of blocks that were
// lost.
std::vector<Stored> MakeBlocks(std::mt19937_64& random) {
  const auto below = [&](size_t end) { return random() % end; };
  std::vector<Stored> blocks;
  for (uint32_t node = 0; node < 4; ++node) {
    for (const char* group : {"os", "task"}) {
      for (uint64_t part = 0; part < 1 + below(2); ++part) {
        Nanos time = kTestStart + static_cast<Nanos>(below(200)) * kSecond;
        uint64_t sequence = 0;
        for (size_t i = below(40); i > 0; --i) {
          sequence += 1 + (below(8) == 0 ? below(20) : 0);
          const Nanos last = time + static_cast<Nanos>(below(30)) * kSecond;
          blocks.push_back({{node, group, sequence | part << keys::kPartShift}, time, last});
          time = last + kSecond;
        }
      }
    }
  }
  return blocks;
}

TEST(BlockScan, FindsTheBlocksOfATimeAndNoOthers) {
  const auto schema = Schema::Make({TestSeries("load", MetricType::kGauge)});
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const TempDir dir;
    leveldb::Options options;
    options.create_if_missing = true;
    leveldb::DB* opened = nullptr;
    ASSERT_TRUE(leveldb::DB::Open(options, dir.path() + "/db", &opened).ok());
    const std::unique_ptr<leveldb::DB> db(opened);
    const std::vector<Stored> blocks = MakeBlocks(random);
    for (const auto& [key, first, last] : blocks) {
      std::vector<Nanos> times = {first};
      if (last > first) times.push_back(last);
      const auto& [node, group, sequence] = key;
      db->Put({}, keys::Block(kProfile, {node, group, sequence}),
              MakeBlock(*schema, times, std::vector<double>(times.size())));
    }
    db->Put({}, keys::Block("frost.124.0.1790000000000000000", {0, "os", 1}), "of another step");
    for (int i = 0; i < 20; ++i) {
      const Nanos first = kTestStart + static_cast<Nanos>(random() % 800) * kSecond;
      const Nanos last = first + static_cast<Nanos>(random() % 100) * kSecond;
      std::set<Key> expected;
      for (const Stored& one : blocks) {
        if (one.last >= first && one.first <= last) expected.insert(one.key);
      }
      std::vector<Key> found;
      BlockScan scan(*db, kProfile, keys::Blocks(kProfile), first, last);
      while (scan.Next()) {
        found.emplace_back(scan.key().node, scan.key().group, scan.key().sequence);
      }
      EXPECT_TRUE(scan.status().ok());
      EXPECT_EQ(found.size(), expected.size()) << "each once";
      EXPECT_EQ(std::set<Key>(found.begin(), found.end()), expected);
    }
  }
}

}  // namespace
}  // namespace sonde::profiles_block_scan_test
