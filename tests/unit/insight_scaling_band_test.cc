// The band of a model: how often it holds a run that comes later.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "insight/scaling/band.h"
#include "insight/scaling/warnings.h"

namespace sonde::insight {
namespace {

using testing::Contains;
using testing::HasSubstr;

constexpr double kDeviation = 0.05;

struct Tried {
  int all = 0;
  int within = 0;
};

// How often the band of `each` runs of 5 sizes holds another run, of a size so many times the
// largest.
Tried Try(double beyond, size_t each) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal;
  const auto noise = [&] { return 1 + kDeviation * normal(random); };
  Tried tried;
  for (const ScaleTerm& term : GrowingTerms()) {
    for (int i = 0; i < 20; ++i) {
      std::vector<ScalePoint> points;
      const auto truth = [&](double size) { return 2 + 8 * term.At(size) / term.At(64); };
      for (const double size : {4, 8, 16, 32, 64}) {
        for (size_t k = 0; k < each; ++k) points.push_back({size, truth(size) * noise()});
      }
      const auto model = FitScaling(points);
      const double size = 64 * beyond;
      const auto band = BandAt(*model, {size, 1});
      const double later = truth(size) * noise();
      ++tried.all;
      tried.within += band && band->low <= later && later <= band->high ? 1 : 0;
    }
  }
  return tried;
}

TEST(ScalingBand, HoldsARunThatComesLater) {
  for (const double beyond : {0.5, 1.0, 4.0, 16.0}) {
    for (const size_t each : {1, 5}) {
      const auto [all, within] = Try(beyond, each);
      EXPECT_GE(within, all * 93 / 100) << beyond << " times the largest size, " << each << " runs";
    }
  }
}

TEST(ScalingBand, MoreRunsNarrowIt) {
  const auto width = [](size_t each) {
    std::mt19937_64 random(3);
    std::normal_distribution<double> normal;
    std::vector<ScalePoint> points;
    for (const double size : {4, 8, 16, 32, 64}) {
      for (size_t k = 0; k < each; ++k) {
        points.push_back({size, size * (1 + kDeviation * normal(random))});
      }
    }
    const Band band = *MeanBandAt(*FitScaling(points), {128, 1});
    return band.high - band.low;
  };
  EXPECT_LT(width(10), 0.5 * width(1));
}

TEST(ScalingBand, IsStudentsForAConstant) {
  // Of 2 and 4: mean 3, t of one degree of freedom, and the errors as curve.h has them.
  const auto model = FitScaling(std::vector<ScalePoint>{{8, 2}, {8, 4}});
  const double s = std::sqrt(2.0) / 3;
  const Band mean = *MeanBandAt(*model, {8, 1});
  EXPECT_NEAR(mean.high, 3 + 12.71 * s * 3 / std::sqrt(2.0), 1e-6);
  EXPECT_EQ(mean.low, 0) << "no run was below it";
  const Band run = *BandAt(*model, {8, 1});
  EXPECT_NEAR(run.high, 3 + 12.71 * s * 3 * std::sqrt(1.5), 1e-6);
  EXPECT_FALSE(BandAt(*FitScaling(std::vector<ScalePoint>{{8, 2}}), {8, 1}))
      << "one run tells none";
}

TEST(ScalingBand, SaysHowFarBeyondWhatWasMeasuredItLooks) {
  std::vector<ScalePoint> points;
  for (const double size : {4, 8, 16, 32, 64}) points.insert(points.end(), 3, {size, size});
  const auto model = FitScaling(points);
  EXPECT_EQ(BeyondMeasured(*model, {32, 1}), 1);
  EXPECT_EQ(BeyondMeasured(*model, {640, 1}), 10);
  EXPECT_EQ(BeyondMeasured(*model, {2, 1}), 2);
  EXPECT_THAT(WarningsAt(*model, {640, 1}, {"nodes", ""}),
              Contains(HasSubstr("far beyond what was measured: 10 times")));
  EXPECT_TRUE(WarningsAt(*model, {128, 1}, {"nodes", ""}).empty());
}

}  // namespace
}  // namespace sonde::insight
