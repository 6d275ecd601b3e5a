// What differs between runs, and what of it is noise.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "profiles/compare/compare.h"
#include "profiles_fixture.h"

namespace sonde::profiles_compare_test {
namespace {

// A run of so many seconds.
ComparedRun RunOf(double seconds) {
  ComparedRun run;
  run.profile.job = TestJob();
  run.profile.job.end = kTestStart + static_cast<Nanos>(seconds * kSecond);
  run.profile.job.state = EndState::kCompleted;
  run.summary = Summarize(run.profile, {}, 0);
  return run;
}

ComparedGroup Runs(const std::vector<double>& seconds) {
  ComparedGroup group;
  for (const double s : seconds) group.push_back(RunOf(s));
  return group;
}

FootprintEntry Entry(std::string_view name, MetricType type, double last, double mean) {
  FootprintEntry entry;
  entry.series = TestSeries(name, type);
  entry.ticks = 10;
  entry.last = last;
  entry.mean = mean;
  return entry;
}

const CompareRow* Find(const Comparison& comparison, const std::string& name) {
  const auto at = std::find_if(comparison.rows.begin(), comparison.rows.end(),
                               [&](const CompareRow& row) { return row.name == name; });
  return at == comparison.rows.end() ? nullptr : &*at;
}

TEST(CompareTest, OfSingleRunsTheRuleOfThumbHolds) {
  const Comparison near = Compare({Runs({100}), Runs({104})}, {});
  const CompareRow* duration = Find(near, "duration");
  ASSERT_NE(duration, nullptr);
  EXPECT_EQ(duration->basis, NoiseBasis::kRule);
  EXPECT_DOUBLE_EQ(duration->changes[0].difference, 4);
  EXPECT_DOUBLE_EQ(duration->changes[0].noise, kNoiseRule * 104);
  EXPECT_FALSE(duration->beyond());
  EXPECT_TRUE(Find(Compare({Runs({100}), Runs({106})}, {}), "duration")->beyond());
}

TEST(CompareTest, OtherRunsOfTheCommandTellTheNoise) {
  // They vary by some 10 %: what would be beyond the rule is not beyond that.
  const Comparison noisy = Compare({Runs({100}), Runs({112})}, Runs({90, 110, 95, 105, 100}));
  EXPECT_EQ(Find(noisy, "duration")->basis, NoiseBasis::kRuns);
  EXPECT_EQ(noisy.known_runs, 7u);
  EXPECT_FALSE(Find(noisy, "duration")->beyond());
  // These hardly do: less than the rule's 5 % is a difference.
  const Comparison quiet = Compare({Runs({100}), Runs({102})}, Runs({100, 100.2, 99.9, 100.1}));
  EXPECT_TRUE(Find(quiet, "duration")->beyond());
  // Two other runs are too few to tell.
  EXPECT_EQ(Find(Compare({Runs({100}), Runs({102})}, Runs({100, 101})), "duration")->basis,
            NoiseBasis::kRule);
}

TEST(CompareTest, GroupsHaveBandsAndTheirSpreadIsTheNoise) {
  const Comparison comparison =
      Compare({Runs({100, 104, 96}), Runs({120, 124, 116}), Runs({103})}, {});
  const CompareRow* duration = Find(comparison, "duration");
  EXPECT_EQ(duration->basis, NoiseBasis::kRuns);
  EXPECT_DOUBLE_EQ(duration->groups[0].mean, 100);
  EXPECT_DOUBLE_EQ(duration->groups[0].min, 96);
  EXPECT_DOUBLE_EQ(duration->groups[1].max, 124);
  // s = 4 with 4 degrees of freedom, whose t is 2.776.
  EXPECT_NEAR(duration->changes[0].noise, 2.776 * 4 * std::sqrt(2.0 / 3), 1e-9);
  EXPECT_TRUE(duration->changes[0].beyond);
  EXPECT_NEAR(duration->changes[1].noise, 2.776 * 4 * std::sqrt(1.0 / 3 + 1), 1e-9);
  EXPECT_FALSE(duration->changes[1].beyond);
}

TEST(CompareTest, RunsThatAreAllAlikeStillHaveSomeNoise) {
  const Comparison comparison = Compare({Runs({100, 100, 100}), Runs({100.4, 100.4})}, {});
  EXPECT_FALSE(Find(comparison, "duration")->beyond());
  EXPECT_NEAR(Find(comparison, "duration")->changes[0].noise, kNoiseLeast * 100.4, 1e-9);
}

TEST(CompareTest, WhatVariesWithinTheRunsMustDifferByMore) {
  ComparedRun a = RunOf(10);
  ComparedRun b = RunOf(10);
  a.profile.footprint = {Entry("app_residual", MetricType::kGauge, 0, 1.0)};
  b.profile.footprint = {Entry("app_residual", MetricType::kGauge, 0, 1.2)};
  EXPECT_TRUE(Find(Compare({{a}, {b}}, {}), "app_residual")->beyond());
  a.variation["app_residual"] = 0.1;
  b.variation["app_residual"] = 0.1;
  const Comparison comparison = Compare({{a}, {b}}, {});
  EXPECT_FALSE(Find(comparison, "app_residual")->beyond());
  EXPECT_NEAR(Find(comparison, "app_residual")->changes[0].noise, 2 * std::hypot(0.1, 0.12), 1e-9);
}

TEST(CompareTest, SectionsStandInTheOrderInWhichPeopleLook) {
  ComparedRun a = RunOf(10);
  a.profile.footprint = {Entry("node_load1", MetricType::kGauge, 1, 1),
                         Entry("app_cells_total", MetricType::kCounter, 7, 1),
                         Entry("gpu_power_watts", MetricType::kGauge, 1, 200)};
  a.profile.moments.phases.push_back({"solve", kTestStart, kTestStart + 3 * kSecond, 0, 1, 1, {}});
  Figure figure;
  figure.name = "speed";
  figure.value = 5;
  a.profile.job.figures.push_back(figure);
  const Comparison comparison = Compare({{a}, {a}}, {});
  EXPECT_TRUE(std::is_sorted(
      comparison.rows.begin(), comparison.rows.end(),
      [](const CompareRow& x, const CompareRow& y) { return x.section < y.section; }));
  EXPECT_EQ(comparison.rows.front().name, "duration");
  EXPECT_EQ(Find(comparison, "solve")->section, CompareSection::kPhases);
  EXPECT_DOUBLE_EQ(Find(comparison, "solve")->groups[0].mean, 3);
  EXPECT_EQ(Find(comparison, "speed")->section, CompareSection::kFigures);
  EXPECT_EQ(Find(comparison, "gpu_power_watts")->section, CompareSection::kGpu);
  EXPECT_EQ(Find(comparison, "node_load1")->section, CompareSection::kOther);
  EXPECT_EQ(Find(comparison, "app_cells_total")->section, CompareSection::kApplication);
  // Of a counter the total, of a gauge the mean.
  EXPECT_DOUBLE_EQ(Find(comparison, "app_cells_total")->groups[0].mean, 7);
  EXPECT_DOUBLE_EQ(Find(comparison, "gpu_power_watts")->groups[0].mean, 200);
  for (const CompareRow& row : comparison.rows) EXPECT_FALSE(row.beyond()) << row.name;
  // What no run has is no row.
  EXPECT_EQ(Find(comparison, "CPU time"), nullptr);
}

TEST(CompareTest, WhatOnlyOneHasIsADifference) {
  ComparedRun a = RunOf(10);
  ComparedRun b = RunOf(10);
  b.profile.footprint = {Entry("app_errors", MetricType::kGauge, 1, 1)};
  const CompareRow row = *Find(Compare({{a}, {b}}, {}), "app_errors");
  EXPECT_EQ(row.groups[0].count, 0u);
  EXPECT_TRUE(row.beyond());
  EXPECT_TRUE(std::isnan(row.changes[0].difference));
}

}  // namespace
}  // namespace sonde::profiles_compare_test
