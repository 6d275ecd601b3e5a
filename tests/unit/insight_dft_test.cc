// The transform against the sum that it stands for, at every kind of length.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <random>

#include "insight/dft.h"

namespace sonde::insight {
namespace {

std::vector<double> Random(size_t n) {
  std::mt19937_64 random(n);
  std::normal_distribution<double> normal(3, 2);
  std::vector<double> out(n);
  for (double& value : out) value = normal(random);
  return out;
}

TEST(Dft, IsTheSumThatItStandsFor) {
  for (const size_t n : {1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 31, 60, 64, 97, 100, 1000, 1021}) {
    const std::vector<double> values = Random(n);
    const auto x = Dft(values);
    ASSERT_EQ(x.size(), n / 2 + 1);
    for (size_t k = 0; k < x.size(); ++k) {
      std::complex<double> sum = 0;
      for (size_t t = 0; t < n; ++t) {
        const double turns = static_cast<double>(k * t % n) / static_cast<double>(n);
        sum += std::polar(values[t], -2 * std::numbers::pi * turns);
      }
      ASSERT_NEAR(std::abs(x[k] - sum), 0, 1e-10 * static_cast<double>(n)) << n << " " << k;
    }
  }
  EXPECT_TRUE(Dft({}).empty());
}

// Parseval's theorem, where the sum would take too long.
TEST(Dft, KeepsThePowerOfALongSeries) {
  for (const size_t n : {65'536, 100'000}) {
    const std::vector<double> values = Random(n);
    const auto x = Dft(values);
    double squares = 0, power = std::norm(x[0]) + std::norm(x[n / 2]);
    for (const double value : values) squares += value * value;
    for (size_t k = 1; k < n / 2; ++k) power += 2 * std::norm(x[k]);
    EXPECT_NEAR(power / static_cast<double>(n) / squares, 1, 1e-12) << n;
  }
}

TEST(LagSums, AreTheSumsThatTheyStandFor) {
  for (const size_t n : {1, 2, 3, 8, 9, 100, 257}) {
    const std::vector<double> values = Random(n);
    const std::vector<double> sums = LagSums(values);
    ASSERT_EQ(sums.size(), n);
    for (size_t lag = 0; lag < n; ++lag) {
      double sum = 0;
      for (size_t t = 0; t + lag < n; ++t) sum += values[t] * values[t + lag];
      ASSERT_NEAR(sums[lag], sum, 1e-10 * static_cast<double>(n)) << n << " " << lag;
    }
  }
  EXPECT_TRUE(LagSums({}).empty());
}

}  // namespace
}  // namespace sonde::insight
