// The series and rows of a step of many nodes: what is looked at and listed, in which order rows
// come, and that joined blocks tell the same as blocks by themselves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/stored_step.h"

namespace sonde::profiles_series_test {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr Nanos kForever = INT64_MAX;

TEST(WantedSeries, OthersAreNotLookedAtNodeByNode) {
  StoredStep step;
  for (uint32_t node = 0; node < kManyNodes; ++node) step.Put({node});
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
  EXPECT_EQ(metrics, kThings) << "a metric is asked for once";
  EXPECT_THAT(looked_at, SizeIs(kManyNodes));
  EXPECT_THAT(looked_at, Each(MetricOf(3)));
}

TEST(WantedSeries, AListHasThemAloneAndStopsAtItsLimit) {
  StoredStep step;
  for (uint32_t node = 0; node < kManyNodes; ++node) step.Put({node});
  const auto archive = step.Finish();
  size_t looked_at = 0;
  const SeriesWanted wanted([](const Metric& metric) { return metric.name == MetricOf(3); },
                            [&](const Series&) { return ++looked_at > 0; });
  const auto list = [&](size_t limit) {
    looked_at = 0;
    return *archive->AllSeries(step.key(), SeriesScope::kNodes, wanted, limit);
  };
  EXPECT_THAT(list(SIZE_MAX), SizeIs(kManyNodes));
  const auto one = list(1);
  ASSERT_THAT(one, SizeIs(1));
  EXPECT_EQ(one[0].metric.name, MetricOf(3));
  EXPECT_EQ(looked_at, 1u);
  EXPECT_THAT(list(0), IsEmpty());
  EXPECT_THAT(*archive->AllSeries(step.key(), SeriesScope::kNodes), SizeIs(kManyNodes * kThings));
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
  for (uint32_t node = 0; node < kManyNodes; ++node) step.Put({node, 1, 0, 5});
  for (uint32_t node = 0; node < kManyNodes; node += 2)
    step.PutJoined({{node, 2, 5}, {node + 1, 2, 5}});
  const auto archive = step.Finish();
  std::vector<uint32_t> nodes;
  const auto read = [&](size_t most) {
    nodes.clear();
    return archive->ReadShapes(step.key(), SeriesScope::kNodes, [&](const StoredShape& shape) {
      nodes.push_back(shape.node);
      EXPECT_EQ(shape.group, "os");
      EXPECT_EQ(shape.schema->size(), kThings);
      EXPECT_EQ(shape.first, kTestStart + kSecond);
      return nodes.size() < most;
    });
  };
  EXPECT_TRUE(read(SIZE_MAX).ok());
  EXPECT_THAT(nodes, SizeIs(kManyNodes));
  EXPECT_THAT(std::set<uint32_t>(nodes.begin(), nodes.end()), SizeIs(kManyNodes));
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

// Blocks by chance: each node has some, the second daemon of n1 among them.
struct ByChance {
  ByChance() {
    job.nodes.push_back(job.nodes[0]);
    for (uint32_t node = 0; node < job.nodes.size(); ++node) {
      int tick = node == kManyNodes ? 20 : 0;
      for (uint64_t sequence = 1; sequence <= 3; ++sequence) {
        const int rows = 1 + static_cast<int>(random() % 4);
        blocks.push_back({node, sequence, tick, rows});
        tick += rows;
        last = std::max(last, tick);
      }
    }
  }
  void PutApart(StoredStep& step) const {
    for (const NodeBlock& block : blocks) step.Put(block);
  }
  // Most of them, in records of nodes from anywhere.
  void PutJoined(StoredStep& step) {
    std::vector<std::vector<NodeBlock>> records(5);
    step.Put(blocks[0]);  // their schema
    for (size_t i = 1; i < blocks.size(); ++i) {
      const size_t record = random() % (records.size() + 1);
      if (record == records.size()) {
        step.Put(blocks[i]);
      } else {
        records[record].push_back(blocks[i]);
      }
    }
    for (const auto& record : records) step.PutJoined(record);
  }

  std::mt19937 random{7};
  JobDescription job = ManyNodes();
  std::vector<NodeBlock> blocks;
  int last = 0;
};

TEST(CountedBefore, IsTheSameOfJoinedBlocks) {
  ByChance chance;
  StoredStep apart(chance.job);
  StoredStep joined(chance.job);
  chance.PutApart(apart);
  chance.PutJoined(joined);
  const auto of_apart = apart.Finish();
  const auto of_joined = joined.Finish();
  for (int tick = 0; tick <= chance.last + 1; ++tick) {
    const Nanos start = kTestStart + tick * kSecond;
    EXPECT_EQ(Counted(*of_joined, joined.key(), start), Counted(*of_apart, apart.key(), start))
        << "from tick " << tick;
  }
}

struct ReadRow {
  uint32_t node = 0;
  int tick = 0;
  double value = 0;
  auto operator<=>(const ReadRow&) const = default;
};
std::vector<ReadRow> RowsOf(const Archive& archive, const std::string& key, Nanos window) {
  std::vector<ReadRow> rows;
  RowsWanted wanted;
  wanted.window = window;
  EXPECT_TRUE(archive
                  .ReadRows(key, SeriesScope::kNodes, wanted,
                            [&](const StoredRow& row) {
                              rows.push_back({row.node,
                                              static_cast<int>((row.time() - kTestStart) / kSecond),
                                              row.block.Column(kThings - 1)[row.row]});
                              return Status();
                            })
                  .ok());
  return rows;
}

TEST(StoredRows, OfJoinedBlocksComeRecordByRecord) {
  constexpr uint32_t kRecords = 4;
  StoredStep step;
  step.Put({0, 1, 0});
  for (uint32_t record = 0; record < kRecords; ++record) {
    std::vector<NodeBlock> blocks;
    for (uint32_t node = record; node < kManyNodes; node += kRecords)
      blocks.push_back({node, 2, 1});
    step.PutJoined(blocks);
  }
  const auto archive = step.Finish();
  const std::vector<ReadRow> rows = RowsOf(*archive, step.key(), kForever);
  ASSERT_THAT(rows, SizeIs(1 + kManyNodes));
  EXPECT_EQ(rows[0], (ReadRow{0, 1, 1 + 9}));
  std::vector<uint32_t> records;
  for (size_t i = 1; i < rows.size(); ++i) {
    const uint32_t record = rows[i].node % kRecords;
    if (records.empty() || records.back() != record) records.push_back(record);
  }
  EXPECT_THAT(records, SizeIs(kRecords)) << "each is read and decoded once";
  EXPECT_EQ(RowsOf(*archive, step.key(), kForever), rows) << "the same order each time";
}

TEST(StoredRows, HaveTheWantedMetricsAlone) {
  for (const bool joined : {false, true}) {
    StoredStep step;
    step.Put({0, 1, 0});
    for (uint32_t node = 1; node + 1 < kManyNodes; node += 2) {
      if (joined) {
        step.PutJoined({{node, 1, 0, 3}, {node + 1, 1, 0, 3}});
      } else {
        for (const uint32_t one : {node, node + 1}) step.Put({one, 1, 0, 3});
      }
    }
    step.UseSeries({TestSeries("other_bytes", MetricType::kGauge)});
    step.Put({0, 2, 10});
    const auto archive = step.Finish();
    RowsWanted wanted;
    wanted.metric = [](const Metric& metric) {
      return metric.name == MetricOf(3) || metric.name == MetricOf(8);
    };
    size_t rows = 0;
    const auto check = [&](const StoredRow& row) {
      ++rows;
      const double tick = static_cast<double>((row.time() - kTestStart) / kSecond);
      EXPECT_EQ(row.block.columns(), kThings) << "the other schema is left out";
      for (size_t i = 0; i < row.block.columns(); ++i) {
        const double value = row.block.Column(i)[row.row];
        if (i == 3 || i == 8) {
          EXPECT_EQ(value, tick * (row.node + 1.0) + static_cast<double>(i));
        } else {
          EXPECT_TRUE(std::isnan(value)) << "column " << i;
        }
      }
      return Status();
    };
    EXPECT_TRUE(archive->ReadRows(step.key(), SeriesScope::kNodes, wanted, check).ok());
    EXPECT_EQ(rows, 1u + 3 * (kManyNodes - 2));
  }
}

// Of a long step that was thinned each node has a few rows.
TEST(StoredRows, ComeInNoMoreWindowsThanThereAreRows) {
  StoredStep step;
  for (const uint32_t node : {0, 1}) {
    step.Put({node, 1, 0});
    step.Put({node, 2, 500});
    step.Put({node, 3, 900, 2});
  }
  const auto archive = step.Finish();
  RowsWanted wanted;
  wanted.window = kSecond;
  std::vector<Nanos> windows;
  size_t rows = 0;
  wanted.on_window = [&](Nanos until) {
    windows.push_back((until - kTestStart) / kSecond);
    return Status();
  };
  EXPECT_TRUE(archive
                  ->ReadRows(step.key(), SeriesScope::kNodes, wanted,
                             [&](const StoredRow&) {
                               ++rows;
                               return Status();
                             })
                  .ok());
  EXPECT_EQ(rows, 8u);
  EXPECT_THAT(windows, ElementsAre(1, 501, 901, 902));
}

// Whatever their order otherwise.
TEST(StoredRows, OfAHostComeInTheOrderOfTimeAndWindowByWindow) {
  ByChance chance;
  StoredStep apart(chance.job);
  StoredStep joined(chance.job);
  chance.PutApart(apart);
  chance.PutJoined(joined);
  const auto of_apart = apart.Finish();
  const auto of_joined = joined.Finish();
  for (const int ticks : {1, 3, 7, 1000}) {
    std::vector<ReadRow> expected = RowsOf(*of_apart, apart.key(), ticks * kSecond);
    std::vector<ReadRow> rows = RowsOf(*of_joined, joined.key(), ticks * kSecond);
    std::map<std::string, int> reached;  // by host
    for (const ReadRow& row : rows) {
      int& before = reached.try_emplace(chance.job.nodes[row.node].host, -1).first->second;
      EXPECT_LT(before, row.tick) << "node " << row.node << ", windows of " << ticks;
      before = row.tick;
    }
    int window = 0;
    for (const ReadRow& row : rows) {
      EXPECT_GE((row.tick - 1) / ticks, window);
      window = (row.tick - 1) / ticks;
    }
    std::sort(rows.begin(), rows.end());
    std::sort(expected.begin(), expected.end());
    EXPECT_EQ(rows, expected);
  }
}

}  // namespace
}  // namespace sonde::profiles_series_test
