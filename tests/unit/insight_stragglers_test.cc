// Stragglers that the tests make, in noise of nodes and of time, and steps that have none.
#include <gtest/gtest.h>

#include <cmath>

#include "insight/causes.h"
#include "insight/stragglers.h"
#include "tests/unit/insight_noise.h"

namespace sonde::insight {
namespace {

// Rows around 100 that go up and down together, each a little above or below the others.
struct MadeOf {
  size_t rows = 16;
  size_t ticks = 300;
  double between = 1;  // deviation of the rows' levels
  double within = 5;   // and of each row over time
  double memory = 0.5;
};
std::vector<Row> MadeRows(SeededNoise& noise, const MadeOf& of) {
  const Row together = noise.Series(of.ticks, 0.9);
  std::vector<Row> rows;
  for (size_t r = 0; r < of.rows; ++r) {
    Row row = noise.Series(of.ticks, of.memory);
    const double own = of.between * noise.Normal();
    for (size_t t = 0; t < of.ticks; ++t) {
      row[t] = 100 + 30 * together[t] + own + of.within * row[t];
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

StragglerFindings FindIn(const std::vector<Row>& rows, const StragglerOptions& options = {}) {
  auto found = FindStragglers(rows, options);
  EXPECT_TRUE(found.ok()) << found.status().message();
  return found.ok() ? *std::move(found) : StragglerFindings();
}

TEST(Stragglers, AStepWithoutOneHasNoneWhateverItsSizeAndNoise) {
  int steps = 0, named = 0;
  for (const size_t rows : {3, 4, 5, 8, 16, 64}) {
    SeededNoise noise(rows);
    for (const double between : {0.0, 2.0, 10.0}) {
      for (const double memory : {0.0, 0.9}) {
        for (int i = 0; i < 100; ++i) {
          ++steps;
          named += !FindIn(MadeRows(noise, {rows, 120, between, 5, memory})).stragglers.empty();
        }
      }
    }
  }
  EXPECT_LE(named, 0.01 * steps);
}

// Without the floor, too: it is the statistics that bound false alarms.
TEST(Stragglers, TheBoundHoldsOnNoiseAlone) {
  StragglerOptions options;
  options.relevant_share = 0;
  int steps = 0, named = 0;
  for (const size_t rows : {4, 7, 12, 40, 200}) {
    SeededNoise noise(100 + rows);
    const int tries = rows > 100 ? 60 : 300;
    for (int i = 0; i < tries; ++i) {
      ++steps;
      named += !FindIn(MadeRows(noise, {rows, 100, 1, 5, 0.5}), options).stragglers.empty();
    }
  }
  EXPECT_LE(named, 0.01 * steps);
}

// Four tasks that use a tenth of a processor, of which one begins half a second late, and their CPU
// times as the kernel tells them, in whole ticks of 10 ms.
TEST(Stragglers, WhatIsReadInCoarseStepsIsNoCloserThanThese) {
  constexpr size_t kTicks = 60;
  constexpr double kTick = 0.1, kStep = 0.01;
  const auto made = [](double share_of_last) {
    std::vector<Row> rows(4, Row(kTicks));
    for (size_t r = 0; r < rows.size(); ++r) {
      const double begin = r == 3 ? 0.5 : 0;
      const double share = r == 3 ? share_of_last : 0.1;
      double before = 0;
      for (size_t t = 0; t < kTicks; ++t) {
        const double ran = std::max(0.0, (static_cast<double>(t) + 1) * kTick - begin);
        const double counted = std::floor(share * ran / kStep + 1e-9) * kStep;
        rows[r][t] = (counted - before) / kTick;
        before = counted;
      }
    }
    return rows;
  };
  StragglerOptions options;
  options.relevant = 0.02;
  EXPECT_EQ(FindIn(made(0.1), options).stragglers.size(), 1u) << "without noise all stands out";
  options.resolution = kStep / kTick;
  EXPECT_TRUE(FindIn(made(0.1), options).stragglers.empty());
  const StragglerFindings found = FindIn(made(0.3), options);
  ASSERT_EQ(found.stragglers.size(), 1u);
  EXPECT_EQ(found.stragglers[0].row, 3u);
}

// A straggler a fifth away among 16 or more, a half among 8: from the start or from the middle on.
TEST(Stragglers, AnInjectedOneIsNamedAndNoOther) {
  int made = 0, named = 0, others = 0, late = 0, in_time = 0;
  for (const auto& [rows, away] :
       {std::pair<size_t, double>{8, 50}, {16, 25}, {64, 20}, {256, 20}}) {
    SeededNoise noise(1000 + rows);
    const int tries = rows > 100 ? 50 : 150;
    for (int i = 0; i < tries; ++i) {
      std::vector<Row> all = MadeRows(noise, {rows, 600, 1, 5, 0.5});
      const size_t row = noise.Below(rows);
      const size_t since = i % 2 == 0 ? 0 : 300;
      for (size_t t = since; t < 600; ++t) all[row][t] += i % 4 < 2 ? away : -away;
      ++made;
      late += since > 0;
      for (const Straggler& one : FindIn(all).stragglers) {
        if (one.row != row) {
          ++others;
          continue;
        }
        ++named;
        EXPECT_NEAR(std::abs(one.overall.value - one.overall.others), away, 4);
        EXPECT_EQ(one.overall.value > one.overall.others, i % 4 < 2);
        in_time += since > 0 && one.begin + 2 >= since && since + 2 >= one.begin;
        EXPECT_EQ(one.end, 600u);
      }
    }
  }
  EXPECT_GE(named, 0.99 * made);
  EXPECT_LE(others, 0.01 * made);
  EXPECT_GE(in_time, 0.97 * late);
}

TEST(Stragglers, SeveralAreNamedTheFarthestFirst) {
  SeededNoise noise(5);
  std::vector<Row> rows = MadeRows(noise, {40, 300});
  for (double& value : rows[7]) value += 40;
  for (double& value : rows[31]) value -= 80;
  const StragglerFindings found = FindIn(rows);
  ASSERT_EQ(found.stragglers.size(), 2u);
  EXPECT_EQ(found.stragglers[0].row, 31u);
  EXPECT_EQ(found.stragglers[1].row, 7u);
}

TEST(Stragglers, PhasesAreToldApart) {
  SeededNoise noise(6);
  std::vector<Row> rows = MadeRows(noise, {16, 400});
  StragglerOptions options;
  options.phases = {{"solve", {{0, 50}, {100, 150}, {200, 250}, {300, 350}}},
                    {"write", {{50, 100}, {150, 200}, {250, 300}, {350, 400}}}};
  for (const auto& [begin, end] : options.phases[1].parts) {
    for (size_t t = begin; t < end; ++t) rows[3][t] += 60;
  }
  const StragglerFindings found = FindIn(rows, options);
  ASSERT_EQ(found.stragglers.size(), 1u);
  ASSERT_EQ(found.stragglers[0].phases.size(), 1u);
  EXPECT_EQ(found.stragglers[0].phases[0].first, "write");
  EXPECT_NEAR(found.stragglers[0].phases[0].second.Share(), 0.6, 0.15);
}

TEST(Stragglers, ADifferenceThatDoesNotMatterIsNone) {
  std::vector<Row> rows(10, Row(100, 50));
  for (double& value : rows[4]) value = 50.05;
  EXPECT_TRUE(FindIn(rows).stragglers.empty());
  for (double& value : rows[4]) value = 60;
  ASSERT_EQ(FindIn(rows).stragglers.size(), 1u);
  EXPECT_EQ(FindIn(rows).stragglers[0].overall.score, kMostScore);
  StragglerOptions options;
  options.relevant = 11;
  EXPECT_TRUE(FindIn(rows, options).stragglers.empty());
}

TEST(Stragglers, OfTwoNobodyCanSayWhichIsWrong) {
  SeededNoise noise(8);
  std::vector<Row> rows = MadeRows(noise, {2, 200});
  EXPECT_FALSE(FindIn(rows).differ);
  for (double& value : rows[1]) value += 50;
  const StragglerFindings found = FindIn(rows);
  EXPECT_TRUE(found.differ);
  EXPECT_TRUE(found.stragglers.empty());
  EXPECT_TRUE(FindIn({rows[0]}).stragglers.empty());
  EXPECT_EQ(FindIn({rows[0]}).rows, 1u);
}

// Three and four rows say little about how far rows usually are from each other, but enough for
// one that is far beyond all of them.
TEST(Stragglers, OfFewRowsOneThatIsFarAwayIsNamed) {
  SeededNoise noise(9);
  for (const auto& [rows, away] : {std::pair<size_t, double>{4, 80}, {3, 80}}) {
    int named = 0;
    for (int i = 0; i < 50; ++i) {
      std::vector<Row> all = MadeRows(noise, {rows, 300, rows == 3 ? 0.02 : 0.2, 0.2, 0});
      for (double& value : all[1]) value += away;
      const auto found = FindIn(all).stragglers;
      named += found.size() == 1 && found[0].row == 1;
    }
    EXPECT_GE(named, rows == 3 ? 40 : 49) << rows;
  }
}

TEST(Stragglers, WhoLacksValuesIsJudgedByThoseItHas) {
  SeededNoise noise(10);
  std::vector<Row> rows = MadeRows(noise, {16, 400});
  for (size_t t = 0; t < 390; ++t) rows[2][t] = std::nan("");     // hardly there
  for (size_t t = 0; t < 400; t += 3) rows[5][t] = std::nan("");  // mostly there
  for (double& value : rows[5]) value += 60;
  const StragglerFindings found = FindIn(rows);
  EXPECT_EQ(found.rows, 15u);
  ASSERT_EQ(found.stragglers.size(), 1u);
  EXPECT_EQ(found.stragglers[0].row, 5u);
  EXPECT_EQ(FindStragglers(std::vector<Row>{{1, 2}, {1}}).status().code(), Code::kInvalid);
  EXPECT_EQ(FindIn({}).rows, 0u);
}

// --- Causes ---

// Row 3 does less from tick 200 on.
class Causes : public testing::Test {
 protected:
  Causes() : noise_(11), rows_(MadeRows(noise_, {12, 400})) {
    for (size_t t = 200; t < 400; ++t) rows_[3][t] -= 60;
    found_ = FindIn(rows_);
  }
  // Rows of another metric; `change` is added to the straggler's from that tick on.
  std::vector<Row> Other(double level, double change, size_t since) {
    std::vector<Row> rows = MadeRows(noise_, {12, 400, 0.1, 0.5, 0.2});
    for (Row& row : rows) {
      for (double& value : row) value += level - 100;
    }
    for (size_t t = since; t < 400; ++t) rows[3][t] += change;
    return rows;
  }
  std::vector<Cause> Of(const std::vector<std::vector<Row>>& metrics, int direction,
                        double least = 0) {
    EXPECT_EQ(found_.stragglers.size(), 1u);
    if (found_.stragglers.empty()) return {};
    std::vector<Row> medians;
    for (const auto& rows : metrics) medians.push_back(MediansOf(rows));
    std::vector<Suspect> suspects;
    for (size_t i = 0; i < metrics.size(); ++i) {
      suspects.push_back({metrics[i], medians[i], 3, direction, least});
    }
    return FindCauses(found_.stragglers[0], rows_[3], found_.medians, suspects);
  }

  SeededNoise noise_;
  std::vector<Row> rows_;
  StragglerFindings found_;
};

TEST_F(Causes, WhatCameWithItIsNamedTheStrongestFirst) {
  const auto causes = Of({Other(50, 0, 0), Other(50, 20, 200), Other(50, 40, 200)}, 1);
  ASSERT_EQ(causes.size(), 2u);
  EXPECT_EQ(causes[0].suspect, 2u);
  EXPECT_EQ(causes[1].suspect, 1u);
  EXPECT_TRUE(causes[0].beyond_limit && causes[0].follows);
  EXPECT_NEAR(causes[0].inside.value - causes[0].inside.others, 40, 1);
  EXPECT_NEAR(causes[0].outside_value - causes[0].outside_others, 0, 1);
  EXPECT_LT(causes[0].correlation, -0.7);
}

TEST_F(Causes, WhatWasThereBeforePointsTheWrongWayOrIsLittleIsNone) {
  EXPECT_TRUE(Of({Other(50, 40, 0)}, 1).empty()) << "it was there when all was well";
  EXPECT_TRUE(Of({Other(50, 40, 200)}, -1).empty()) << "more of what less of would explain";
  EXPECT_TRUE(Of({Other(50, 40, 200)}, 1, 45).empty());
  EXPECT_TRUE(Of({Other(1000, 40, 200)}, 1).empty()) << "4 %";
}

TEST_F(Causes, NoiseIsNone) {
  int named = 0;
  for (int i = 0; i < 200; ++i) {
    named += !Of({MadeRows(noise_, {12, 400}), MadeRows(noise_, {12, 400})}, 1).empty();
  }
  EXPECT_LE(named, 2);
}

TEST_F(Causes, AnEventThatOnlyTheStragglerHas) {
  std::vector<Row> errors(12, Row(400));
  for (size_t t = 200; t < 400; t += 2) errors[3][t] = 4;
  const auto causes = Of({errors}, 1, 0.1);
  ASSERT_EQ(causes.size(), 1u);
  EXPECT_EQ(causes[0].inside.score, kMostScore);
  EXPECT_DOUBLE_EQ(causes[0].inside.value, 2);
}

TEST(RankCorrelations, AreThoseOfRanks) {
  EXPECT_DOUBLE_EQ(RankCorrelation(Row{1, 2, 3, 4}, Row{1, 8, 27, 1000}), 1);
  EXPECT_DOUBLE_EQ(RankCorrelation(Row{1, 2, 3, 4}, Row{4, 3, 2, 1}), -1);
  // With equal values: R's cor(c(1, 2, 2, 4), c(1, 3, 2, 4), method = "spearman").
  EXPECT_NEAR(RankCorrelation(Row{1, 2, 2, 4}, Row{1, 3, 2, 4}), 0.9486833, 1e-7);
  EXPECT_TRUE(std::isnan(RankCorrelation(Row{1, 1, 1}, Row{1, 2, 3})));
  EXPECT_TRUE(std::isnan(RankCorrelation(Row{1, 2}, Row{1, 2})));
}

}  // namespace
}  // namespace sonde::insight
