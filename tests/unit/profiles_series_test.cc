// The series and rows of a step of many nodes: what is looked at and listed, in which order rows
// come, and that joined blocks tell the same as blocks by themselves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "profiles/archive/open_archive.h"
#include "profiles/live/live_archive.h"
#include "profiles/records/keys.h"
#include "series/block/joined.h"
#include "tests/unit/profiles_fixture.h"

namespace sonde {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr uint32_t kNodes = 40;
constexpr size_t kMetrics = 10;
constexpr Nanos kForever = INT64_MAX;

std::string MetricOf(size_t i) { return "node_thing_" + std::to_string(i) + "_total"; }

std::vector<Series> Things(size_t first, size_t last) {
  std::vector<Series> series;
  for (size_t i = first; i < last; ++i) {
    series.push_back(TestSeries(MetricOf(i), MetricType::kCounter));
  }
  return series;
}

JobDescription ManyNodes() {
  JobDescription job = TestJob();
  for (uint32_t i = 2; i < kNodes; ++i) {
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
  Schema::Ptr schema_ = Schema::Make(Things(0, kMetrics));
};

TEST(WantedSeries, OthersAreNotLookedAtNodeByNode) {
  StoredStep step;
  for (uint32_t node = 0; node < kNodes; ++node) step.Put({node});
  const auto archive = step.Finish();
  size_t metrics = 0;
  std::vector<std::string> looked_at;
  const SeriesWanted wanted(
      [&](const Metric& metric) {
        ++metrics;
        return metric.name == MetricOf(3);
      },
      [&](const Series& series) {
        looked_at.push_back(series.metric.name);
        return *series.tags.Find("host") == "n7";
      });
  const auto read = archive->Read(step.key(), SeriesScope::kNodes, wanted, 0, kForever);
  ASSERT_TRUE(read.ok()) << read.status().message();
  ASSERT_THAT(*read, SizeIs(1));
  EXPECT_EQ(read->at(0).series.metric.name, MetricOf(3));
  EXPECT_EQ(read->at(0).points.at(0).value, 7 + 3);
  EXPECT_EQ(metrics, kMetrics) << "a metric is asked for once";
  EXPECT_THAT(looked_at, SizeIs(kNodes));
  EXPECT_THAT(looked_at, Each(MetricOf(3)));
}

TEST(WantedSeries, AListHasThemAloneAndStopsAtItsLimit) {
  StoredStep step;
  for (uint32_t node = 0; node < kNodes; ++node) step.Put({node});
  const auto archive = step.Finish();
  size_t looked_at = 0;
  const SeriesWanted wanted([](const Metric& metric) { return metric.name == MetricOf(3); },
                            [&](const Series&) { return ++looked_at > 0; });
  const auto list = [&](size_t limit) {
    looked_at = 0;
    return *archive->AllSeries(step.key(), SeriesScope::kNodes, wanted, limit);
  };
  EXPECT_THAT(list(SIZE_MAX), SizeIs(kNodes));
  const auto one = list(1);
  ASSERT_THAT(one, SizeIs(1));
  EXPECT_EQ(one[0].metric.name, MetricOf(3));
  EXPECT_EQ(looked_at, 1u);
  EXPECT_THAT(list(0), IsEmpty());
  EXPECT_THAT(*archive->AllSeries(step.key(), SeriesScope::kNodes), SizeIs(kNodes * kMetrics));
}

// The second daemon of n1 is another node of the description, and a device came meanwhile.
TEST(WantedSeries, AListHasEachOnceThoughAHostHasSeveralSchemas) {
  JobDescription job = TestJob();
  job.nodes.push_back(job.nodes[0]);
  StoredStep step(job);
  step.UseSeries(Things(0, 3));
  step.Put({0, 1, 0});
  step.UseSeries(Things(1, 5));
  step.Put({0, 2, 1});
  step.Put({2, 1, 2});
  step.PutJoined({{1, 1, 3}, {2, 2, 3}});
  const auto archive = step.Finish();
  std::vector<std::string> names;
  const auto all = archive->AllSeries(step.key(), SeriesScope::kNodes);
  ASSERT_TRUE(all.ok());
  for (const Series& series : *all) {
    names.push_back(SeriesName(series.metric.name, series.tags));
  }
  EXPECT_THAT(names, SizeIs(5 + 4));
  EXPECT_THAT(std::set<std::string>(names.begin(), names.end()), SizeIs(5 + 4));
}

TEST(StoredShapes, ComeOnceEachUntilTheyAreEnough) {
  StoredStep step;
  for (uint32_t node = 0; node < kNodes; ++node) step.Put({node, 1, 0, 5});
  for (uint32_t node = 0; node < kNodes; node += 2)
    step.PutJoined({{node, 2, 5}, {node + 1, 2, 5}});
  const auto archive = step.Finish();
  std::vector<uint32_t> nodes;
  const auto read = [&](size_t most) {
    nodes.clear();
    return archive->ReadShapes(step.key(), SeriesScope::kNodes, [&](const StoredShape& shape) {
      nodes.push_back(shape.node);
      EXPECT_EQ(shape.group, "os");
      EXPECT_EQ(shape.schema->size(), kMetrics);
      EXPECT_EQ(shape.first, kTestStart + kSecond);
      return nodes.size() < most;
    });
  };
  EXPECT_TRUE(read(SIZE_MAX).ok());
  EXPECT_THAT(nodes, SizeIs(kNodes));
  EXPECT_THAT(std::set<uint32_t>(nodes.begin(), nodes.end()), SizeIs(kNodes));
  EXPECT_TRUE(read(3).ok());
  EXPECT_THAT(nodes, SizeIs(3));
}

// All that a reader gets of counters from `start` on: "HOST METRIC TICK:VALUE ...".
std::vector<std::string> Counted(const Archive& archive, const std::string& key, Nanos start) {
  const auto read = archive.Read(key, SeriesScope::kNodes, nullptr, start, kForever, Thinned::kMean,
                                 Earlier::kCounted);
  EXPECT_TRUE(read.ok()) << read.status().message();
  std::vector<std::string> lines;
  for (const SeriesData& data : *read) {
    std::string line = *data.series.tags.Find("host") + " " + data.series.metric.name;
    for (const Point& point : data.points) {
      line += " " + std::to_string((point.time - kTestStart) / kSecond) + ":" +
              std::to_string(point.value);
    }
    lines.push_back(std::move(line));
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

// By chance: each node has some blocks, the second daemon of n1 among them, and some of the blocks
// are joined, in records of nodes from anywhere.
TEST(CountedBefore, IsTheSameOfJoinedBlocks) {
  std::mt19937 random(7);
  JobDescription job = ManyNodes();
  job.nodes.push_back(job.nodes[0]);
  std::vector<NodeBlock> blocks;
  std::vector<std::vector<NodeBlock>> records(5);
  int last = 0;
  for (uint32_t node = 0; node < job.nodes.size(); ++node) {
    int tick = node == kNodes ? 20 : 0;
    for (uint64_t sequence = 1; sequence <= 3; ++sequence) {
      const int rows = 1 + static_cast<int>(random() % 4);
      blocks.push_back({node, sequence, tick, rows});
      tick += rows;
      last = std::max(last, tick);
    }
  }
  StoredStep apart(job);
  StoredStep joined(job);
  joined.Put(blocks[0]);  // their schema
  for (size_t i = 0; i < blocks.size(); ++i) {
    apart.Put(blocks[i]);
    const size_t record = random() % (records.size() + 1);
    if (i == 0) continue;
    if (record == records.size()) {
      joined.Put(blocks[i]);
    } else {
      records[record].push_back(blocks[i]);
    }
  }
  for (const auto& record : records) joined.PutJoined(record);
  const auto of_apart = apart.Finish();
  const auto of_joined = joined.Finish();
  for (int tick = 0; tick <= last + 1; ++tick) {
    const Nanos start = kTestStart + tick * kSecond;
    EXPECT_EQ(Counted(*of_joined, joined.key(), start), Counted(*of_apart, apart.key(), start))
        << "from tick " << tick;
  }
}

}  // namespace
}  // namespace sonde
