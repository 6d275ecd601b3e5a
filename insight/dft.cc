#include "insight/dft.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <kissfft/kissfft.hh>
#include <map>
#include <numbers>
#include <utility>

namespace sonde::insight {
namespace {

using Complex = std::complex<double>;

Complex Turned(double turns) { return std::polar(1.0, 2 * std::numbers::pi * turns); }

// The roots of unity take as long as the transform, and series of a step are as long as each other.
const kissfft<double>& PlanOf(size_t size, bool inverse) {
  constexpr size_t kMostPlans = 4;
  thread_local std::map<std::pair<size_t, bool>, kissfft<double>> plans;
  const std::pair key(size, inverse);
  const auto known = plans.find(key);
  if (known != plans.end()) return known->second;
  if (plans.size() >= kMostPlans) plans.clear();
  return plans.emplace(key, kissfft<double>(size, inverse)).first->second;
}

// In place; `inverse`: with the other sign of the exponent. Nothing is divided by the size.
void Transform(std::vector<Complex>& data, bool inverse) {
  std::vector<Complex> out(data.size());
  PlanOf(data.size(), inverse).transform(data.data(), out.data());
  data.swap(out);
}

// Where a factor of the size is greater, Bluestein's way is shorter.
constexpr size_t kMostFactor = 61;

size_t LargestFactor(size_t n) {
  size_t largest = 1;
  for (size_t factor = 2; factor * factor <= n; ++factor) {
    for (; n % factor == 0; n /= factor) largest = factor;
  }
  return std::max(largest, n);
}

// Of factors 2, 3 and 5 alone.
size_t QuickSize(size_t least) {
  for (size_t size = least;; ++size) {
    if (LargestFactor(size) <= 5) return size;
  }
}

// exp(-pi i t^2 / n): k t is (k^2 + t^2 - (k - t)^2) / 2, which is what Bluestein's algorithm is
// of.
std::vector<Complex> Chirp(size_t n) {
  std::vector<Complex> chirp(n);
  for (uint64_t t = 0; t < n; ++t) {
    // Whole numbers, so that the angle of a large t is as exact as that of a small one.
    const auto angle = static_cast<double>(t * t % (2 * n));
    chirp[t] = Turned(-angle / static_cast<double>(2 * n));
  }
  return chirp;
}

}  // namespace

std::vector<Complex> Dft(std::span<const double> values) {
  const size_t n = values.size();
  if (n == 0) return {};
  if (LargestFactor(n) <= kMostFactor) {
    std::vector<Complex> out(values.begin(), values.end());
    Transform(out, false);
    out.resize(n / 2 + 1);
    return out;
  }
  const std::vector<Complex> chirp = Chirp(n);
  const size_t room = QuickSize(2 * n - 1);
  std::vector<Complex> signal(room), filter(room);
  for (size_t t = 0; t < n; ++t) {
    signal[t] = values[t] * chirp[t];
    filter[t] = filter[(room - t) % room] = std::conj(chirp[t]);
  }
  Transform(signal, false);
  Transform(filter, false);
  for (size_t i = 0; i < room; ++i) signal[i] *= filter[i];
  Transform(signal, true);
  std::vector<Complex> out(n / 2 + 1);
  for (size_t k = 0; k < out.size(); ++k) out[k] = signal[k] * chirp[k] / static_cast<double>(room);
  return out;
}

std::vector<double> LagSums(std::span<const double> values) {
  const size_t n = values.size();
  if (n == 0) return {};
  std::vector<Complex> data(QuickSize(2 * n - 1));
  for (size_t t = 0; t < n; ++t) data[t] = values[t];
  Transform(data, false);
  for (Complex& one : data) one = std::norm(one);
  Transform(data, true);
  std::vector<double> sums(n);
  for (size_t lag = 0; lag < n; ++lag)
    sums[lag] = data[lag].real() / static_cast<double>(data.size());
  return sums;
}

}  // namespace sonde::insight
