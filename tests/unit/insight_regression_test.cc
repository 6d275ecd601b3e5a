// Whether a run is worse than those before it.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "insight/regression.h"
#include "insight/student.h"
#include "tests/unit/insight_noise.h"

namespace sonde::insight {
namespace {

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

// Tables of Student's t.
TEST(Student, BeyondIsThatOfTheTables) {
  EXPECT_NEAR(sonde::StudentBeyond(0.05, 1), 6.3138, 1e-4);
  EXPECT_NEAR(sonde::StudentBeyond(0.01, 2), 6.9646, 1e-4);
  EXPECT_NEAR(sonde::StudentBeyond(0.005, 3), 5.8409, 1e-4);
  EXPECT_NEAR(sonde::StudentBeyond(0.001, 4), 7.1732, 1e-4);
  EXPECT_NEAR(sonde::StudentBeyond(0.025, 30), 2.0423, 1e-4);
  EXPECT_NEAR(sonde::StudentBeyond(0.0005, 60), 3.4602, 1e-4);
  EXPECT_NEAR(sonde::StudentBeyond(0.025, 1000), 1.9623, 1e-4);
  for (size_t degrees = 1; degrees <= 30; ++degrees) {
    EXPECT_NEAR(sonde::StudentBeyond(0.025, degrees), sonde::StudentT(degrees), 6e-3) << degrees;
  }
}

// What a run that is as the others were is called.
TEST(Regression, ByChanceRunsAreCalledWorseAsOftenAsIsSaid) {
  constexpr int kTries = 40'000;
  constexpr double kChance = 0.01;
  SeededNoise noise(1);
  for (const size_t runs : {4u, 5u, 6u, 8u, 12u, 20u}) {
    int worse = 0;
    std::vector<double> before(runs);
    for (int i = 0; i < kTries; ++i) {
      for (double& x : before) x = 100 + noise.Normal();
      worse += JudgeRun(before, 100 + noise.Normal(), Better::kLess, kChance, 0).worse ? 1 : 0;
    }
    // Three standard deviations of the count.
    EXPECT_NEAR(worse, kTries * kChance, 3 * std::sqrt(kTries * kChance)) << runs;
  }
}

TEST(Regression, AChangeBeyondNoiseIsFound) {
  SeededNoise noise(2);
  int found = 0;
  for (int i = 0; i < 1000; ++i) {
    std::vector<double> before(10);
    for (double& x : before) x = 100 + 2 * noise.Normal();
    found += JudgeRun(before, 115 + 2 * noise.Normal(), Better::kLess, 0.001, 0.02).worse ? 1 : 0;
  }
  EXPECT_GT(found, 850) << "15 % slower, where runs differ by 2 %";
}

TEST(Regression, WhichWayIsWorseDependsOnTheNumber) {
  const std::vector<double> before = {99, 100, 101, 100, 100};
  EXPECT_TRUE(JudgeRun(before, 150, Better::kLess, 0.01, 0.02).worse);
  EXPECT_FALSE(JudgeRun(before, 50, Better::kLess, 0.01, 0.02).worse);
  EXPECT_TRUE(JudgeRun(before, 50, Better::kLess, 0.01, 0.02).differs);
  EXPECT_TRUE(JudgeRun(before, 50, Better::kMore, 0.01, 0.02).worse);
  const Judgement unknown = JudgeRun(before, 150, Better::kUnknown, 0.01, 0.02);
  EXPECT_TRUE(unknown.differs && !unknown.worse);
}

TEST(Regression, WhatIsSmallDoesNotMatter) {
  const std::vector<double> same(8, 100);
  EXPECT_FALSE(JudgeRun(same, 101.9, Better::kLess, 0.01, 0.02).worse);
  EXPECT_TRUE(JudgeRun(same, 102.1, Better::kLess, 0.01, 0.02).worse);
  EXPECT_DOUBLE_EQ(JudgeRun(same, 100, Better::kLess, 0.01, 0.02).limit, 2);
}

TEST(Regression, OneDisturbedRunHidesNothing) {
  std::vector<double> before = {99, 100, 101, 100.5, 99.5, 100.2, 99.8, 100.1, 99.9, 100.7, 99.3};
  before.push_back(300);
  const Judgement judged = JudgeRun(before, 110, Better::kLess, 0.001, 0.02);
  EXPECT_EQ(judged.left_out, 1u);
  EXPECT_EQ(judged.runs, 11u);
  EXPECT_TRUE(judged.worse);
}

TEST(Regression, OfFewRunsNothingIsKnown) {
  for (const std::vector<double>& before :
       {std::vector<double>{}, {100, 100, 100}, {100, kNothing, 100, kNothing, 100}}) {
    const Judgement judged = JudgeRun(before, 1000, Better::kLess, 0.01, 0.02);
    EXPECT_FALSE(judged.differs || judged.worse);
    EXPECT_TRUE(std::isnan(judged.limit));
  }
  const std::vector<double> enough(4, 100);
  EXPECT_FALSE(JudgeRun(enough, kNothing, Better::kLess, 0.01, 0.02).differs);
}

}  // namespace
}  // namespace sonde::insight
