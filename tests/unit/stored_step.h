// A finished step of many nodes for tests: blocks by themselves, and joined ones.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "profiles/archive/open_archive.h"
#include "profiles/live/live_archive.h"
#include "profiles/records/keys.h"
#include "series/block/joined.h"
#include "tests/unit/profiles_fixture.h"

namespace sonde {

inline constexpr uint32_t kManyNodes = 40;
inline constexpr size_t kThings = 10;

inline std::string MetricOf(size_t i) { return "node_thing_" + std::to_string(i) + "_total"; }

inline std::vector<Series> Things(size_t first, size_t last) {
  std::vector<Series> series;
  for (size_t i = first; i < last; ++i) {
    series.push_back(TestSeries(MetricOf(i), MetricType::kCounter));
  }
  return series;
}

inline JobDescription ManyNodes() {
  JobDescription job = TestJob();
  for (uint32_t i = 2; i < kManyNodes; ++i) {
    job.nodes.push_back(job.nodes[0]);
    job.nodes.back().host = "n" + std::to_string(i + 1);
  }
  return job;
}

// One node's rows of so many ticks; its counters are the tick times the node's number.
struct NodeBlock {
  uint32_t node = 0;
  uint64_t sequence = 1;
  int first = 0;
  int rows = 1;
};

class StoredStep {
 public:
  explicit StoredStep(JobDescription job = ManyNodes()) : job_(std::move(job)) {}

  std::string Block(const NodeBlock& block) const {
    std::vector<double> columns;
    for (size_t i = 0; i < schema_->size(); ++i) {
      for (int row = 1; row <= block.rows; ++row) {
        columns.push_back((block.first + row) * (block.node + 1.0) + static_cast<double>(i));
      }
    }
    return MakeBlock(*schema_, TestTimes(block.first, block.rows), columns);
  }
  void Put(const NodeBlock& block) {
    ASSERT_TRUE(live_->PutBlock({block.node, "os", block.sequence}, *schema_, Block(block)).ok());
  }
  // One record of them. The schema must be stored.
  void PutJoined(const std::vector<NodeBlock>& blocks) {
    std::vector<std::string> bytes;
    std::vector<JoinedEntry> entries;
    for (const NodeBlock& block : blocks) {
      bytes.push_back(Block(block));
      JoinedEntry& entry = entries.emplace_back();
      entry.node = block.node;
      entry.group = "os";
      entry.sequence = entry.first = block.sequence;
    }
    const std::vector<std::string_view> views(bytes.begin(), bytes.end());
    BlockEncoder encoder;
    const auto joined = JoinBlocks(std::move(entries), views, encoder);
    ASSERT_TRUE(joined.ok());
    LiveArchive::BlockWrite write;
    write.schema_id = schema_->id();
    write.block = *joined;
    write.joined = true;
    live_->ReplaceBlocks({&write, 1});
    ASSERT_TRUE(write.status.ok()) << write.status.message();
  }
  void UseSeries(std::vector<Series> series) { schema_ = Schema::Make(std::move(series)); }
  std::shared_ptr<const Archive> Finish() {
    Profile profile;
    profile.job = job_;
    profile.job.state = EndState::kCompleted;
    profile.job.end = kTestStart + 1000 * kSecond;
    EXPECT_TRUE(live_->PutProfile(profile).ok());
    EXPECT_TRUE(live_->Finish().ok());
    return OpenArchive(root(), 0)->reader;
  }
  std::string key() const { return keys::ProfileKey(job_); }
  std::string root() const { return dir_.path() + "/archive"; }

 private:
  const TempDir dir_;
  const JobDescription job_;
  std::unique_ptr<LiveArchive> live_ = *LiveArchive::Create(root(), job_);
  Schema::Ptr schema_ = Schema::Make(Things(0, kThings));
};

}  // namespace sonde
