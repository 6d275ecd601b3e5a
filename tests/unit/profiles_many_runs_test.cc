// How the numbers of many runs spread, and their series as bands.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cmath>
#include <memory>
#include <string>

#include "profiles/compare/many_runs.h"
#include "profiles/compare/run_bands.h"
#include "profiles_fixture.h"

namespace sonde::profiles_many_runs_test {
namespace {

namespace json = boost::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr int kTicks = 4;

class ManyRunsTest : public testing::Test {
 protected:
  // A run of so many seconds that used so much memory.
  void Record(int job, double seconds, double memory, EndState state = EndState::kCompleted) {
    Profile profile;
    profile.job = TestJob(std::to_string(job), kTestStart - job * kSecond);
    profile.job.command = "./heat";
    profile.job.period = kSecond;
    profile.job.state = state;
    if (state != EndState::kRunning) {
      profile.job.end = profile.job.start + static_cast<Nanos>(seconds * kSecond);
    }
    FootprintEntry entry;
    entry.series = TestSeries("app_heap_memory_bytes", MetricType::kGauge);
    entry.ticks = kTicks;
    entry.last = entry.mean = entry.min = entry.max = memory;
    profile.footprint.push_back(entry);
    auto live = LiveArchive::Create(dir_.path(), profile.job);
    ASSERT_TRUE(live.ok()) << live.status().message();
    ASSERT_TRUE((*live)->PutProfile(profile).ok());
    PutMemory(**live, profile.job.start, memory, static_cast<int>(seconds));
    if (state == EndState::kRunning) {
      running_ = *std::move(live);
    } else {
      ASSERT_TRUE((*live)->Finish().ok());
    }
  }

  std::shared_ptr<const Archive> Open() {
    auto archive = Archive::Open(dir_.path());
    EXPECT_TRUE(archive.ok());
    return *std::move(archive);
  }

  static ManyRunsQuestion Named(std::vector<std::string> names) { return {std::move(names), {}}; }

 private:
  // A gauge of the whole step that stays as it is.
  static void PutMemory(LiveArchive& live, Nanos start, double memory, int rows) {
    const auto schema = ReducedSchema({TaskSeries().back()});
    const auto n = static_cast<size_t>(rows);
    std::vector<double> columns(schema->size() * n);
    std::vector<Nanos> times;
    for (size_t i = 0; i < n; ++i) {
      times.push_back(start + static_cast<Nanos>(i) * kSecond + kSecond / 2);
      Reduced value;
      value.Add(memory, {0, Owner::kNobody});
      double row[kStatColumns];
      ToColumns(value, row);
      for (size_t k = 0; k < kStatColumns; ++k) columns[k * n + i] = row[k];
    }
    ASSERT_TRUE(
        live.PutBlock({kReducedNode, "task", 1}, *schema, MakeBlock(*schema, times, columns)).ok());
  }

  TempDir dir_;
  std::unique_ptr<LiveArchive> running_;
};

const SpreadRow* RowNamed(const ManyRuns& runs, std::string_view name) {
  for (const SpreadRow& row : runs.rows) {
    if (row.kind.name == name) return &row;
  }
  return nullptr;
}

TEST(Quantiles, LieBetweenNeighbours) {
  EXPECT_EQ(QuantileOf({7}, 0.9), 7);
  EXPECT_EQ(QuantileOf({1, 2, 3, 4, 5}, 0.5), 3);
  EXPECT_DOUBLE_EQ(QuantileOf({1, 2, 3, 4}, 0.5), 2.5);
  EXPECT_DOUBLE_EQ(QuantileOf({0, 10}, 0.1), 1);
  EXPECT_EQ(QuantileOf({0, 10}, 1), 10);
  EXPECT_TRUE(std::isnan(QuantileOf({}, 0.5)));
}

TEST_F(ManyRunsTest, ANumberSpreadsAndTheRunThatStandsOutIsNamed) {
  for (int i = 0; i < 11; ++i) Record(100 + i, 10, i == 4 ? 9000 : 1000 + i);
  const auto opened = Open();
  const Archive& archive = *opened;
  auto found = FindManyRuns(archive, {});
  ASSERT_TRUE(found.ok()) << found.status().message();
  ASSERT_EQ(found->entries.size(), 11u);
  const auto runs = LoadManyRuns(archive, *std::move(found));
  ASSERT_TRUE(runs.ok()) << runs.status().message();
  const SpreadRow* memory = RowNamed(*runs, "app_heap_memory_bytes");
  ASSERT_NE(memory, nullptr);
  EXPECT_EQ(memory->values.size(), 11u);
  EXPECT_EQ(memory->min, 1000);
  EXPECT_EQ(memory->max, 9000);
  EXPECT_EQ(memory->median, 1006);
  ASSERT_EQ(memory->apart.size(), 1u);
  EXPECT_EQ(runs->found.entries[memory->apart[0]].job.id.job, "104");
  EXPECT_LT(memory->standing, Standing::kSame);
  const SpreadRow* duration = RowNamed(*runs, "duration");
  ASSERT_NE(duration, nullptr);
  EXPECT_EQ(duration->standing, Standing::kSame);
  EXPECT_THAT(duration->apart, IsEmpty());
  // What differs comes first.
  EXPECT_LT(memory, duration);
}

TEST_F(ManyRunsTest, WhatVariesAlikeHasNoRunThatStandsOut) {
  for (int i = 0; i < 12; ++i) Record(100 + i, 10 + i, 1000);
  const auto opened = Open();
  const Archive& archive = *opened;
  const auto runs = LoadManyRuns(archive, *FindManyRuns(archive, {}));
  ASSERT_TRUE(runs.ok());
  const SpreadRow* duration = RowNamed(*runs, "duration");
  EXPECT_EQ(duration->standing, Standing::kWeighty);
  EXPECT_THAT(duration->apart, IsEmpty());
  // 11 of at most 21 seconds.
  EXPECT_NEAR(duration->weight, 11.0 / 21, 1e-6);
}

TEST_F(ManyRunsTest, RunsAreNamedOrFilteredAndAreTwoOrMore) {
  for (int i = 0; i < 3; ++i)
    Record(100 + i, 10, 1000, i == 2 ? EndState::kFailed : EndState::kCompleted);
  Record(99, 10, 1000, EndState::kRunning);
  const auto opened = Open();
  const Archive& archive = *opened;
  auto found = FindManyRuns(archive, Named({"102.0", "100.0", "102.0"}));
  ASSERT_TRUE(found.ok()) << found.status().message();
  ASSERT_EQ(found->entries.size(), 2u);  // each once, as they were named
  EXPECT_EQ(found->entries[0].job.id.job, "102");
  ManyRunsQuestion completed;
  completed.selection.state = EndState::kCompleted;
  found = FindManyRuns(archive, completed);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->entries.size(), 2u);
  found = FindManyRuns(archive, {});
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->entries.size(), 3u);
  EXPECT_EQ(found->running, 1u);
  completed.selection.state = EndState::kFailed;
  EXPECT_EQ(FindManyRuns(archive, completed).status().code(), Code::kInvalid);
  EXPECT_EQ(FindManyRuns(archive, Named({"9.0", "100.0"})).status().code(), Code::kNotFound);
  const Status many =
      FindManyRuns(archive, Named(std::vector<std::string>(kMostManyRuns + 1, "100.0"))).status();
  EXPECT_EQ(many.code(), Code::kInvalid);
  EXPECT_THAT(std::string(many.message()), HasSubstr("501 runs are asked for: at most 500"));
}

TEST_F(ManyRunsTest, SeriesAreBandsOverTimeAndOverShares) {
  Record(100, 4, 10);
  Record(101, 4, 20);
  Record(102, 8, 60);
  const auto opened = Open();
  const Archive& archive = *opened;
  const auto found = FindManyRuns(archive, {});
  ASSERT_TRUE(found.ok());
  auto bands = LoadRunBands(archive, *found, {"task_resident_memory_bytes"}, BandAxis::kTime);
  ASSERT_TRUE(bands.ok()) << bands.status().message();
  EXPECT_EQ(bands->bins, 8u);
  EXPECT_EQ(bands->end, 8);
  ASSERT_EQ(bands->series.size(), 1u);
  const RunBand& memory = bands->series[0];
  EXPECT_THAT(memory.count, ElementsAre(3, 3, 3, 3, 1, 1, 1, 1));
  EXPECT_THAT(memory.median, ElementsAre(20, 20, 20, 20, 60, 60, 60, 60));
  EXPECT_EQ(memory.min[0], 10);
  EXPECT_EQ(memory.max[0], 60);
  EXPECT_DOUBLE_EQ(memory.p10[0], 12);
  EXPECT_DOUBLE_EQ(memory.p90[0], 52);
  // All runs reach every share of themselves.
  bands = LoadRunBands(archive, *found, {"task_resident_memory_bytes"}, BandAxis::kShare);
  ASSERT_TRUE(bands.ok());
  EXPECT_EQ(bands->bins, 4u);
  EXPECT_EQ(bands->end, 1);
  EXPECT_THAT(bands->series[0].count, ElementsAre(3, 3, 3, 3));
  EXPECT_THAT(bands->series[0].max, ElementsAre(60, 60, 60, 60));
  EXPECT_EQ(LoadRunBands(archive, *found, {}, BandAxis::kTime).status().code(), Code::kInvalid);
  const auto none = LoadRunBands(archive, *found, {"no_such_metric"}, BandAxis::kTime);
  ASSERT_TRUE(none.ok());
  EXPECT_THAT(none->series, IsEmpty());
}

TEST_F(ManyRunsTest, ValuesAreWrittenWhereRunsDiffer) {
  Record(100, 10, 1000);
  Record(101, 10, 3000);
  const auto opened = Open();
  const Archive& archive = *opened;
  const auto runs = LoadManyRuns(archive, *FindManyRuns(archive, Named({"100", "101"})));
  ASSERT_TRUE(runs.ok());
  const json::value written = json::parse(ManyRunsToJson(*runs));
  EXPECT_EQ(written.at("runs").at(1).at("job"), "101");
  for (const json::value& row : written.at("rows").as_array()) {
    const bool has_values = row.as_object().contains("values");
    EXPECT_EQ(has_values, row.at("standing") != "same" && row.at("standing") != "pseudo");
    if (row.at("name") == "app_heap_memory_bytes") {
      EXPECT_EQ(row.at("values").at(0).to_number<double>(), 1000);
      EXPECT_EQ(row.at("values").at(1).to_number<double>(), 3000);
    }
  }
}

}  // namespace
}  // namespace sonde::profiles_many_runs_test
