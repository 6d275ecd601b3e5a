// Noise with a fixed seed, for tests of what is found in series.
#pragma once

#include <cmath>
#include <random>
#include <vector>

namespace sonde::insight {

class SeededNoise {
 public:
  explicit SeededNoise(uint64_t seed) : random(seed) {}

  double Normal() { return normal_(random); }
  // Of variance 1; each value keeps the share `memory` of the one before.
  std::vector<double> Series(size_t length, double memory = 0) {
    std::vector<double> out(length);
    double value = Normal();
    const double fresh = std::sqrt(1 - memory * memory);
    for (double& one : out) {
      value = memory * value + fresh * Normal();
      one = value;
    }
    return out;
  }
  // From 0 to before `below`.
  size_t Below(size_t below) { return std::uniform_int_distribution<size_t>(0, below - 1)(random); }

  std::mt19937_64 random;

 private:
  std::normal_distribution<double> normal_;
};

}  // namespace sonde::insight
