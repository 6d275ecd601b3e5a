// Models of how a metric grows with one parameter: over values that are known, exactly and with
// noise.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "insight/scaling/model.h"
#include "insight/scaling/warnings.h"

namespace sonde::insight {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using Points = std::vector<ScalePoint>;
using Terms = std::vector<ScaleTerm>;

constexpr std::initializer_list<double> kSizes = {4, 8, 16, 32, 64};

Points Made(const ScaleTerm& term, double constant, double coefficient) {
  Points points;
  for (const double size : kSizes) points.push_back({size, constant + coefficient * term.At(size)});
  return points;
}

std::optional<ScaleTerm> TermOf(const ScalingModel& model) {
  return model.constant() ? std::nullopt : model.curve.products().front().first;
}

// That grows by `grown` times its value at 4, and is 10 at 64.
Points Growing(const ScaleTerm& term, double grown) {
  const double least = term.At(4), most = term.At(64);
  const double constant = std::max(0.0, (most - (1 + grown) * least) / grown);
  return Made(term, 10 * constant / (constant + most), 10 / (constant + most));
}

class Noise {
 public:
  explicit Noise(uint64_t seed) : random_(seed) {}
  Points operator()(Points points, double deviation) {
    for (ScalePoint& point : points) point.value *= 1 + deviation * normal_(random_);
    return points;
  }

 private:
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
};

// Whether 5 runs with this noise could tell the two curves apart: the best test there is, which
// knows both curves and the noise, has an error of 5 % both ways where they differ by 2 * 1.645
// standard deviations, as the root of the sum of squares (Neyman, Pearson, 1933).
bool CannotBeToldApart(const Points& exact, const std::optional<ScaleTerm>& found, double noise) {
  std::vector<RunAt> at;
  for (const auto& [size, value] : exact) at.push_back({{size, 1}, value});
  const auto curve =
      Curve::Through(*GatherRuns(at),
                     found ? std::vector<Product>{{found, std::nullopt}} : std::vector<Product>{});
  return curve && std::sqrt(curve->error()) <= 2 * 1.645 * noise;
}

TEST(Scaling, FindsEveryTermOfItsSpaceWithoutNoise) {
  EXPECT_EQ(GrowingTerms().size(), 42u);
  for (const ScaleTerm& term : GrowingTerms()) {
    const auto model = FitScaling(Made(term, 10, 0.5));
    ASSERT_TRUE(model.ok());
    SCOPED_TRACE(model->Text("size"));
    ASSERT_EQ(TermOf(*model), term)
        << term.numerator << "/" << term.denominator << " " << term.logs;
    EXPECT_NEAR(model->curve.constant(), 10, 1e-6);
    EXPECT_NEAR(model->curve.coefficient(0), 0.5, 1e-6);
    EXPECT_NEAR(model->adjusted_r2, 1, 1e-9);
    EXPECT_LT(model->smape, 1e-6);
    EXPECT_NEAR(model->At(1024), 10 + 0.5 * term.At(1024), 1e-6 * term.At(1024) + 1e-5);
  }
}

TEST(Scaling, FindsWhatFallsAsRunsGetLarger) {
  for (const ScaleTerm& term : {ScaleTerm{-1, 1, 0}, {-1, 2, 0}, {-2, 3, -1}}) {
    const auto model = FitScaling(Made(term, 2, 100));
    ASSERT_TRUE(model.ok());
    ASSERT_EQ(TermOf(*model), term) << model->Text("size");
    EXPECT_NEAR(model->At(1024), 2 + 100 * term.At(1024), 1e-6);
  }
}

// How many of `all` have a right term.
int RightTerms(double deviation, int each, int& all) {
  Noise noise(1);
  int right = 0;
  for (const ScaleTerm& term : GrowingTerms()) {
    for (const double grown : {1, 4, 16, 100}) {
      for (int i = 0; i < 5; ++i, ++all) {
        const Points exact = Growing(term, grown);
        Points runs;
        for (int k = 0; k < each; ++k) {
          for (const ScalePoint& run : noise(exact, deviation)) runs.push_back(run);
        }
        const double left = deviation / std::sqrt(each);
        right += CannotBeToldApart(exact, TermOf(*FitScaling(runs)), left) ? 1 : 0;
      }
    }
  }
  return right;
}

TEST(Scaling, WithNoiseItsTermIsOneThatTheRunsCannotTellFromTheTrueOne) {
  for (const double deviation : {0.02, 0.05}) {
    for (const int each : {1, 5}) {
      int all = 0;
      const int right = RightTerms(deviation, each, all);
      EXPECT_GE(right, all * 97 / 100) << deviation << ", " << each << " runs, of " << all;
    }
  }
  int all = 0;
  EXPECT_GE(RightTerms(0.1, 5, all), all * 97 / 100) << "of " << all;
}

TEST(Scaling, ClearGrowthIsFoundUnderMuchNoise) {
  Noise noise(2);
  int found = 0;
  for (int i = 0; i < 200; ++i) {
    const ScaleTerm& term = GrowingTerms()[static_cast<size_t>(i) % 42];
    found += FitScaling(noise(Growing(term, 4), 0.1))->constant() ? 0 : 1;
  }
  EXPECT_GE(found, 190);
}

TEST(Scaling, WhatDoesNotGrowIsConstant) {
  for (const double value : {0.0, 7.0, -3.0}) {
    const auto model =
        FitScaling(Points{{1, value}, {2, value}, {4, value}, {8, value}, {16, value}});
    ASSERT_TRUE(model.ok());
    EXPECT_TRUE(model->constant());
    EXPECT_DOUBLE_EQ(model->At(64), value);
    EXPECT_LT(model->rss, 1e-25);
  }
}

// Trends that are found in `tries` series that have none.
int FalseTrends(size_t sizes, size_t runs_of_first, size_t runs, double deviation, int tries) {
  std::mt19937_64 random(sizes * 10 + runs);
  std::normal_distribution<double> noise(0, deviation);
  int trends = 0;
  for (int i = 0; i < tries; ++i) {
    Points points;
    double size = i % 2 == 0 ? 1 : 4;
    for (size_t k = 0; k < sizes; ++k, size *= 2) {
      for (size_t n = 0; n < (k == 0 ? runs_of_first : runs); ++n) {
        points.push_back({size, 100 * (1 + noise(random))});
      }
    }
    trends += FitScaling(points)->constant() ? 0 : 1;
  }
  return trends;
}

TEST(Scaling, NoiseAloneMakesNoTrend) {
  constexpr int kTries = 400;
  // Three standard deviations of so many tries.
  const int most = static_cast<int>(kTries * kByChance) + 13;
  for (const double deviation : {0.01, 0.05, 0.3}) {
    for (const size_t sizes : {3, 4, 5, 6, 8}) {
      const int trends = FalseTrends(sizes, 1, 1, deviation, kTries);
      EXPECT_LE(trends, most) << sizes << " sizes, " << deviation;
      EXPECT_EQ(trends > 0, sizes >= kEnoughSizes);
    }
    EXPECT_LE(FalseTrends(5, 4, 4, deviation, kTries), most) << deviation;
    EXPECT_LE(FalseTrends(6, 20, 1, deviation, kTries), most) << "many runs of one size";
  }
}

TEST(Scaling, ADisturbanceThatAllRunsOfASizeShareMakesNoTrend) {
  std::mt19937_64 random(4);
  std::normal_distribution<double> normal;
  int trends = 0;
  constexpr int kTries = 400;
  for (int i = 0; i < kTries; ++i) {
    Points points;
    for (const double size : kSizes) {
      const double day = 1 + 0.1 * normal(random);
      for (int n = 0; n < 5; ++n) points.push_back({size, 100 * day * (1 + 0.01 * normal(random))});
    }
    trends += FitScaling(points)->constant() ? 0 : 1;
  }
  EXPECT_LE(trends, kTries * kByChance + 13);
}

// The term itself is hard to tell from its neighbours; what it says of four times the largest run
// is what counts.
TEST(Scaling, WithNoiseItPredictsLargerRuns) {
  Noise noise(2);
  int close = 0, tries = 0;
  for (const ScaleTerm& term : {ScaleTerm{1, 1, 0}, {2, 1, 0}, {1, 2, 0}, {1, 1, 1}}) {
    for (int i = 0; i < 100; ++i, ++tries) {
      const double predicted = FitScaling(noise(Made(term, 5, 2), 0.02))->At(256);
      const double value = 5 + 2 * term.At(256);
      close += std::abs(predicted - value) < 0.3 * value ? 1 : 0;
    }
  }
  EXPECT_GE(close, tries * 9 / 10);
}

// Where the largest run is hundreds of times longer, its noise is longer than the small runs are.
TEST(Scaling, SmallRunsCountAsMuchAsLargeOnes) {
  Points points = Made({3, 1, 0}, 10, 0.01);
  points[3].value *= 0.95;
  points[4].value *= 1.05;
  const auto model = FitScaling(points);
  for (const ScalePoint& point : {points[0], points[1]}) {
    EXPECT_NEAR(model->At(point.size), point.value, 0.1 * point.value);
  }
}

TEST(Scaling, OfSeveralRunsOfOneSizeThoseFarFromTheOthersAreLeftOut) {
  Points points;
  for (const double size : kSizes) {
    for (const double off : {0.0, 0.0, 1e6}) points.push_back({size, 3 * size + off});
  }
  const auto model = FitScaling(points);
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(TermOf(*model), (ScaleTerm{1, 1, 0}));
  EXPECT_NEAR(model->curve.coefficient(0), 3, 1e-9);
  EXPECT_EQ(model->places, 5u);
  EXPECT_EQ(model->runs, 10u);
  EXPECT_EQ(model->left_out, 5u);
  EXPECT_THAT(WarningsOf(*model, {"tasks", ""}),
              ElementsAre("5 runs left out: far from the others of the same size"));
}

TEST(Scaling, RunsThatDifferByNoiseAllCount) {
  Noise noise(5);
  size_t left_out = 0, runs = 0;
  for (int i = 0; i < 100; ++i) {
    Points points;
    for (int n = 0; n < 5; ++n) {
      for (const ScalePoint& point : noise(Made({1, 1, 0}, 5, 2), 0.05)) points.push_back(point);
    }
    const auto model = FitScaling(points);
    left_out += model->left_out;
    runs += points.size();
    EXPECT_NEAR(model->noise, 0.05, 0.03);
  }
  EXPECT_LE(left_out, runs / 100);
}

TEST(Scaling, FewSizesShowNoTrend) {
  const auto one = FitScaling(Points{{8, 1}, {8, 3}});
  ASSERT_TRUE(one.ok());
  EXPECT_TRUE(one->constant());
  EXPECT_EQ(one->At(8), 2);
  EXPECT_EQ(one->places, 1u);
  EXPECT_TRUE(FitScaling(Points{{8, 1}, {16, 2}})->constant());
  const auto four = FitScaling(Points{{8, 1}, {16, 2}, {32, 4}, {64, 8}});
  EXPECT_TRUE(four->constant());
  EXPECT_THAT(WarningsOf(*four, {"nodes", ""}),
              testing::Contains("few points: runs of 4 different nodes, a trend needs 5"));
}

TEST(Scaling, WarnsOfNoiseOfANarrowRangeAndOfNothingElse) {
  EXPECT_THAT(WarningsOf(*FitScaling(Made({1, 1, 0}, 1, 1)), {"nodes", ""}),
              ElementsAre(HasSubstr("few runs")));
  Points narrow, noisy;
  for (const double size : {8, 9, 10, 11, 12}) {
    for (int n = 0; n < 2; ++n) narrow.push_back({size, size});
  }
  EXPECT_THAT(WarningsOf(*FitScaling(narrow), {"nodes", ""}),
              ElementsAre(HasSubstr("narrow range: nodes from 8 to 12")));
  for (const double size : kSizes) {
    for (const double factor : {0.8, 1.2}) noisy.push_back({size, size * factor});
  }
  EXPECT_THAT(WarningsOf(*FitScaling(noisy), {"nodes", ""}), ElementsAre(HasSubstr("noisy: ")));
  Points clean;
  for (const double size : kSizes) clean.insert(clean.end(), 3, {size, size});
  EXPECT_THAT(WarningsOf(*FitScaling(clean), {"nodes", ""}), IsEmpty());
}

TEST(Scaling, IsWrittenAsExtraPDoes) {
  const auto text = [](double constant, double coefficient, const ScaleTerm& term,
                       std::string_view name) {
    ScalingModel model;
    model.curve = Curve::Of(constant, {Product{term, std::nullopt}}, {coefficient});
    return model.Text(name);
  };
  EXPECT_EQ(text(1.5, 0.25, {3, 2, 1}, "size"), "1.5 + 0.25 * size^(3/2) * log2(size)^(1)");
  EXPECT_EQ(text(1, -2, {0, 1, 2}, "p"), "1 + -2 * log2(p)^(2)");
  EXPECT_EQ(text(1, 2, {2, 1, 0}, "p"), "1 + 2 * p^(2)");
  EXPECT_EQ(text(1, 2, {-1, 2, 0}, "p"), "1 + 2 * p^(-1/2)");
  ScalingModel constant;
  constant.curve = Curve::Of(7, {}, {});
  EXPECT_EQ(constant.Text("p"), "7");
}

TEST(Scaling, WhatIsNoNumberIsRefused) {
  EXPECT_EQ(FitScaling(Points{}).status().code(), Code::kInvalid);
  for (const ScalePoint& point : {ScalePoint{0, 1},
                                  {0.5, 1},
                                  {std::nan(""), 1},
                                  {1, std::nan("")},
                                  {std::numeric_limits<double>::infinity(), 1}}) {
    EXPECT_EQ(FitScaling(Points{{1, 1}, point}).status().code(), Code::kInvalid);
  }
  // Too large for any term.
  EXPECT_TRUE(FitScaling(Points{{1, 1}, {1e150, 2}, {1e200, 3}}).ok());
  EXPECT_TRUE(FitScaling(Points{{1, 1}, {1e100, 2}, {1e150, 3}, {1e180, 4}, {1e200, 5}}).ok());
}

}  // namespace
}  // namespace sonde::insight
