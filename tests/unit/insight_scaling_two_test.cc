// Models of two parameters, over values that are known.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

#include "insight/scaling/model.h"
#include "insight/scaling/warnings.h"

namespace sonde::insight {
namespace {

using testing::Contains;
using testing::HasSubstr;

using Function = std::function<double(double, double)>;

std::vector<RunAt> Grid(const Function& f, double noise = 0, uint64_t seed = 1) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::vector<RunAt> runs;
  for (const double p : {2, 4, 8, 16, 32}) {
    for (const double q : {10, 20, 40, 80, 160}) {
      runs.push_back({{p, q}, f(p, q) * (1 + noise * normal(random))});
    }
  }
  return runs;
}

struct Known {
  const char* text;
  Function f;
};
const Known kKnown[] = {
    {"5 + 2 * p^(1) * q^(1/2)", [](double p, double q) { return 5 + 2 * p * std::sqrt(q); }},
    {"5 + 2 * p^(1) + 3 * q^(1/2)",
     [](double p, double q) { return 5 + 2 * p + 3 * std::sqrt(q); }},
    {"5 + 2 * p^(1) * q^(1/2) + 30 * p^(1)",
     [](double p, double q) { return 5 + 2 * p * std::sqrt(q) + 30 * p; }},
    {"5 + 2 * p^(1) * q^(1/2) + 30 * q^(1/2)",
     [](double p, double q) { return 5 + 2 * p * std::sqrt(q) + 30 * std::sqrt(q); }},
    {"5 + 2 * p^(1) * log2(p)^(1)", [](double p, double) { return 5 + 2 * p * std::log2(p); }},
    {"5 + 2 * log2(q)^(1)", [](double, double q) { return 5 + 2 * std::log2(q); }},
    {"10 + 100 * p^(-1) * q^(1)", [](double p, double q) { return 10 + 100 / p * q; }},
    {"7", [](double, double) { return 7; }}};

TEST(ScalingOfTwo, FindsHowTwoTermsGoTogether) {
  for (const auto& [text, f] : kKnown) {
    const auto model = FitModel(Grid(f), 2);
    ASSERT_TRUE(model.ok()) << text;
    EXPECT_EQ(model->Text("p", "q"), text);
    EXPECT_NEAR(model->At({64, 320}), f(64, 320), 1e-6 * f(64, 320));
  }
}

TEST(ScalingOfTwo, PredictsBeyondTheGridWithNoise) {
  int close = 0, all = 0;
  for (const auto& [text, f] : kKnown) {
    for (uint64_t seed = 1; seed <= 20; ++seed, ++all) {
      const auto model = FitModel(Grid(f, 0.05, seed), 2);
      const double truth = f(64, 320);
      close += std::abs(model->At({64, 320}) - truth) < 0.3 * truth ? 1 : 0;
    }
  }
  EXPECT_GE(close, all * 95 / 100);
}

// A cross of runs: each parameter changes while the other one stays.
TEST(ScalingOfTwo, ACrossIsEnough) {
  std::vector<RunAt> runs;
  const auto f = [](double p, double q) { return 5 + 2 * p + 3 * q; };
  for (const double p : {2, 4, 8, 16, 32}) runs.push_back({{p, 10}, f(p, 10)});
  for (const double q : {20, 40, 80, 160}) runs.push_back({{2, q}, f(2, q)});
  runs.push_back({{32, 160}, f(32, 160)});
  EXPECT_EQ(FitModel(runs, 2)->Text("p", "q"), "5 + 2 * p^(1) + 3 * q^(1)");
}

TEST(ScalingOfTwo, NoiseAloneMakesNoTrend) {
  int trends = 0;
  constexpr int kTries = 1000;
  for (uint64_t seed = 1; seed <= kTries; ++seed) {
    trends += FitModel(Grid([](double, double) { return 7; }, 0.1, seed), 2)->constant() ? 0 : 1;
  }
  // And three standard deviations of so many tries.
  EXPECT_LE(trends, kTries * kByChance + 21);
}

TEST(ScalingOfTwo, ParametersThatOnlyChangeTogetherCannotBeToldApart) {
  std::vector<RunAt> runs;
  for (const double p : {2, 4, 8, 16, 32}) runs.push_back({{p, 4 * p}, 5 + p});
  const auto model = FitModel(runs, 2);
  ASSERT_TRUE(model.ok());
  EXPECT_TRUE(model->constant());
  EXPECT_THAT(WarningsOf(*model, {"nodes", "tasks"}),
              Contains(HasSubstr("nodes takes 5 values, but only 1 of them while the other")));
}

}  // namespace
}  // namespace sonde::insight
