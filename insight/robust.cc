#include "insight/robust.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace sonde::insight {
namespace {

// Simulated: the farthest of n normal numbers from their median, in 1.4826 times the median of the
// distances, is farther in 10 %, 1 %, 0.1 % and 0.01 % of 2,000,000 draws (of more than 32 numbers
// fewer, 400,000 for 100).
struct LimitRow {
  double count;
  std::array<double, 4> limits;
};
constexpr LimitRow kLimits[] = {
    {3, {10.84, 112.5, 1100, 10730}},    {4, {4.737, 15.98, 51.57, 162.8}},
    {5, {5.397, 18.57, 59.86, 194.0}},   {6, {4.195, 10.04, 22.31, 49.72}},
    {7, {4.409, 10.67, 23.99, 51.43}},   {8, {3.909, 7.965, 14.87, 27.16}},
    {9, {4.026, 8.234, 15.43, 28.29}},   {10, {3.753, 6.922, 11.72, 19.07}},
    {12, {3.654, 6.281, 9.971, 15.11}},  {14, {3.592, 5.880, 8.842, 12.78}},
    {16, {3.544, 5.597, 8.174, 11.41}},  {20, {3.490, 5.236, 7.247, 9.779}},
    {24, {3.455, 4.993, 6.697, 8.717}},  {32, {3.430, 4.723, 6.090, 7.570}},
    {48, {3.426, 4.498, 5.538, 6.694}},  {64, {3.445, 4.385, 5.298, 6.140}},
    {100, {3.488, 4.307, 5.057, 5.774}},
};
constexpr size_t kEnoughSteps = 2000;     // from which the noise is told, of a longer series
constexpr double kCut = 5;                // deviations
constexpr size_t kBeside = 3;             // values on each side
constexpr double kInterpolatedFrom = 24;  // below, the limits of odd counts are larger

// Croux and Rousseeuw's b(n).
double FewNumbers(size_t n) {
  constexpr std::array<double, 10> kFew = {1,     1,     1.196, 1.495, 1.363,
                                           1.206, 1.200, 1.140, 1.129, 1.107};
  const auto count = static_cast<double>(n);
  return n < kFew.size() ? kFew[n] : count / (count - 0.8);
}

// What a normal number exceeds in the share `above` of all cases, which is below a half.
double NormalQuantile(double above) {
  double low = 0, high = 40;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (std::erfc(middle / std::sqrt(2.0)) / 2 > above ? low : high) = middle;
  }
  return high;
}

// Between the columns, and beyond the last, limits follow powers of the chance.
double LimitOf(const LimitRow& row, double by_chance) {
  const double at = std::max(0.0, -std::log10(by_chance) - 1);
  const size_t column = std::min<size_t>(static_cast<size_t>(at), row.limits.size() - 2);
  const double slope = std::log(row.limits[column + 1] / row.limits[column]);
  return row.limits[column] * std::exp(slope * (at - static_cast<double>(column)));
}

}  // namespace

double MedianIn(std::span<double> values) {
  if (values.empty()) return kNoNumber;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  const double below = *std::max_element(values.begin(), middle);
  return below + (*middle - below) / 2;
}

double MeanOf(std::span<const double> values) {
  double sum = 0, count = 0;
  for (const double value : values) {
    if (std::isnan(value)) continue;
    sum += value;
    ++count;
  }
  return count == 0 ? kNoNumber : sum / count;
}

double MedianOf(std::span<const double> values) {
  std::vector<double> there;
  there.reserve(values.size());
  for (const double value : values) {
    if (!std::isnan(value)) there.push_back(value);
  }
  return MedianIn(there);
}

Centre CentreOf(std::span<const double> values) {
  std::vector<double> there;
  there.reserve(values.size());
  for (const double value : values) {
    if (!std::isnan(value)) there.push_back(value);
  }
  Centre out;
  out.count = there.size();
  if (there.empty()) return out;
  out.median = MedianIn(there);
  for (double& value : there) value = std::abs(value - out.median);
  out.deviation = FewNumbers(out.count) * kMadOfNormal * MedianIn(there);
  return out;
}

double OutlierLimit(size_t count, double by_chance) {
  if (count < 3) return std::numeric_limits<double>::infinity();
  const auto n = static_cast<double>(count);
  const LimitRow* const last = std::end(kLimits) - 1;
  if (n >= last->count) {
    // The quantile for all of them; what the spread's own error adds was simulated up to 1000.
    const double more = (11 + 4 * std::log10(0.01 / by_chance)) / n;
    return NormalQuantile(by_chance / (2 * n)) * (1 + std::max(0.0, more)) / FewNumbers(count);
  }
  const LimitRow* row = std::begin(kLimits);
  while (row + 1 != std::end(kLimits) && (row + 1)->count <= n) ++row;
  double limit = LimitOf(*row, by_chance);
  if (n > row->count && row->count >= kInterpolatedFrom) {
    const double share = std::log(n / row->count) / std::log((row + 1)->count / row->count);
    limit += share * (LimitOf(row[1], by_chance) - limit);
  }
  return limit / FewNumbers(count);
}

double NeighbourNoise(std::span<const double> values) {
  const size_t stride = 1 + values.size() / kEnoughSteps;
  std::vector<double> steps;
  steps.reserve(values.size() / stride + 1);
  double last = kNoNumber;
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(values[i])) continue;
    if (i % stride == 0 && !std::isnan(last)) steps.push_back(std::abs(values[i] - last));
    last = values[i];
  }
  return steps.empty() ? 0 : kMadOfNormal * MedianIn(steps) / std::sqrt(2.0);
}

std::vector<double> WithoutSpikes(std::span<const double> values) {
  const double noise = NeighbourNoise(values);
  std::vector<double> out(values.begin(), values.end());
  if (!(noise > 0) || values.size() < 2 * kBeside + 1) return out;
  double beside[2 * kBeside + 1];
  for (size_t i = 0; i < values.size(); ++i) {
    // Without such a step to a neighbour a value is no spike; most are told by that alone.
    const bool stays =
        std::isnan(values[i]) ||
        (i > 0 && i + 1 < values.size() && std::abs(values[i] - values[i - 1]) < noise * kCut / 2 &&
         std::abs(values[i] - values[i + 1]) < noise * kCut / 2);
    if (stays) continue;
    const size_t begin = std::min(i > kBeside ? i - kBeside : 0, values.size() - 2 * kBeside - 1);
    size_t count = 0;
    for (size_t k = begin; k < begin + 2 * kBeside + 1; ++k) {
      if (!std::isnan(values[k])) beside[count++] = values[k];
    }
    const double median = MedianIn({beside, count});
    out[i] = std::clamp(values[i], median - kCut * noise, median + kCut * noise);
  }
  return out;
}

}  // namespace sonde::insight
