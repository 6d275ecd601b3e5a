// Ranks told from a node's first: one schema for all nodes, and every name as it was for readers.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "profiles/archive/open_archive.h"
#include "profiles/live/live_archive.h"
#include "series/store/task_ranks.h"
#include "tests/unit/profiles_fixture.h"

namespace sonde::profiles_task_ranks_test {
namespace {

Schema::Ptr Tasks(const std::vector<std::string>& ranks) {
  std::vector<Series> series;
  for (const std::string& rank : ranks) {
    series.push_back(TestSeries("task_cpu_seconds_total", MetricType::kCounter, {{"task", rank}}));
  }
  series.push_back(TestSeries("task_count", MetricType::kGauge));
  return Schema::Make(series);
}

std::vector<std::string> RanksOf(const Schema& schema, uint32_t first) {
  std::vector<std::string> ranks;
  for (const Series& series : schema.series()) {
    Tags tags = series.tags;
    AddFirstRank(first, tags);
    if (const std::string* task = tags.Find(kTaskTag)) ranks.push_back(*task);
  }
  return ranks;
}

TEST(TaskRanks, NodesWithLikeTasksHaveOneSchema) {
  const Schema::Ptr a = RanksFrom(FirstRank(*Tasks({"6", "7"})), Tasks({"6", "7"}));
  const Schema::Ptr b = RanksFrom(FirstRank(*Tasks({"512", "513"})), Tasks({"512", "513"}));
  EXPECT_EQ(a->id(), b->id());
  EXPECT_EQ(RanksOf(*b, 512), (std::vector<std::string>{"512", "513"}));
  // Dealt out in turns, to four nodes: as well.
  EXPECT_EQ(RanksFrom(1, Tasks({"1", "5"}))->id(), RanksFrom(3, Tasks({"3", "7"}))->id());
}

TEST(TaskRanks, WhatChangesNothingIsTheSameSchema) {
  const Schema::Ptr tasks = Tasks({"0", "1"});
  EXPECT_EQ(FirstRank(*tasks), 0u);
  EXPECT_EQ(RanksFrom(0, tasks), tasks);
  const Schema::Ptr none = Tasks({});
  EXPECT_EQ(FirstRank(*none), kNoRank);
  EXPECT_FALSE(HasTasks(*none));
  EXPECT_EQ(RanksFrom(7, none), none);
}

TEST(TaskRanks, ARankBelowTheFirstComesBack) {
  const Schema::Ptr schema = RanksFrom(5, Tasks({"3", "4294967294"}));
  EXPECT_TRUE(HasTasks(*schema));
  EXPECT_EQ(RanksOf(*schema, 5), (std::vector<std::string>{"3", "4294967294"}));
}

TEST(TaskRanks, WhatIsNoRankStays) {
  const std::vector<std::string> odd = {"a", "", "1 ", "99999999999999999999", "-"};
  EXPECT_EQ(RanksOf(*RanksFrom(5, Tasks(odd)), 5), odd);
}

TEST(TaskRanks, TheGroupsNameHoldsTheFirst) {
  EXPECT_EQ(GroupFrom(0, "task"), "task");
  EXPECT_EQ(GroupFrom(512, "task"), "task+512");
  EXPECT_EQ(FirstRankOf("task+512"), 512u);
  for (const char* group : {"task", "", "+", "task+", "task+x", "task+-1", "task+99999999999"}) {
    EXPECT_EQ(FirstRankOf(group), 0u) << group;
  }
}

// Two nodes with one schema in an archive: as many series as nodes have tasks, by their ranks.
TEST(TaskRanks, AnArchiveTellsEachNodesOwn) {
  const TempDir dir;
  const std::string root = dir.path() + "/archive";
  const Schema::Ptr schema = RanksFrom(2, Tasks({"2", "3"}));
  auto live = LiveArchive::Create(root, TestJob());
  ASSERT_TRUE(live.ok()) << live.status().message();
  for (uint32_t node = 0; node < 2; ++node) {
    const std::vector<double> columns = {1.0 + node, 2.0 + node, 3.0 + node};
    const BlockKey key{node, GroupFrom(2 * node, "task"), 1};
    ASSERT_TRUE((*live)->PutBlock(key, *schema, MakeBlock(*schema, TestTimes(0, 1), columns)).ok());
  }
  live->reset();
  const auto archive = OpenArchive(root, 0);
  ASSERT_TRUE(archive.ok());
  const std::string profile = archive->reader->List()->at(0).key;
  const auto wanted = [](const Series& series) { return series.tags.Find("task") != nullptr; };
  const auto read = archive->reader->Read(profile, SeriesScope::kNodes, wanted, 0, INT64_MAX);
  ASSERT_TRUE(read.ok());
  std::vector<std::string> names;
  for (const SeriesData& data : *read) {
    names.push_back(*data.series.tags.Find("host") + ":" + *data.series.tags.Find("task") + "=" +
                    std::to_string(static_cast<int>(data.points.at(0).value)));
  }
  EXPECT_EQ(names, (std::vector<std::string>{"n1:0=1", "n1:1=2", "n2:2=2", "n2:3=3"}));
  EXPECT_EQ(archive->reader->AllSeries(profile, SeriesScope::kNodes)->size(), 6u);
}

}  // namespace
}  // namespace sonde::profiles_task_ranks_test
