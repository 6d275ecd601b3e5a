#include "series/query/aggregate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>

#include "series/query/group_values.h"

namespace sonde {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// How a percentile's place among n sorted values is found: the definitions of Hyndman and Fan
// (The American Statistician 50, 1996), and the one that statistics packages had before.
enum class Estimate { kLegacy, kR3, kR7 };

struct Percentile {
  Aggregator aggregator;
  double percent;
  Estimate estimate;
};

constexpr std::array<Percentile, 19> kPercentiles = {{
    {Aggregator::kP5, 5, Estimate::kLegacy},      {Aggregator::kP50, 50, Estimate::kLegacy},
    {Aggregator::kP75, 75, Estimate::kLegacy},    {Aggregator::kP90, 90, Estimate::kLegacy},
    {Aggregator::kP95, 95, Estimate::kLegacy},    {Aggregator::kP99, 99, Estimate::kLegacy},
    {Aggregator::kP999, 99.9, Estimate::kLegacy}, {Aggregator::kEp50R3, 50, Estimate::kR3},
    {Aggregator::kEp75R3, 75, Estimate::kR3},     {Aggregator::kEp90R3, 90, Estimate::kR3},
    {Aggregator::kEp95R3, 95, Estimate::kR3},     {Aggregator::kEp99R3, 99, Estimate::kR3},
    {Aggregator::kEp999R3, 99.9, Estimate::kR3},  {Aggregator::kEp50R7, 50, Estimate::kR7},
    {Aggregator::kEp75R7, 75, Estimate::kR7},     {Aggregator::kEp90R7, 90, Estimate::kR7},
    {Aggregator::kEp95R7, 95, Estimate::kR7},     {Aggregator::kEp99R7, 99, Estimate::kR7},
    {Aggregator::kEp999R7, 99.9, Estimate::kR7},
}};

const Percentile* FindPercentile(Aggregator aggregator) {
  const auto* const at =
      std::find_if(kPercentiles.begin(), kPercentiles.end(),
                   [&](const Percentile& p) { return p.aggregator == aggregator; });
  return at == kPercentiles.end() ? nullptr : at;
}

// From 1 on; a fraction is between two values.
double PlaceOf(const Percentile& percentile, Estimate estimate, size_t count) {
  const double p = percentile.percent / 100;
  const auto n = static_cast<double>(count);
  switch (estimate) {
    case Estimate::kR3:
      return p <= 0.5 / n ? 0 : std::rint(n * p);
    case Estimate::kR7:
      return p >= 1 ? n : 1 + (n - 1) * p;
    default:
      return percentile.percent * (n + 1) / 100;
  }
}

// The values, at least one, are sorted.
double ValueAt(double place, const std::vector<double>& values) {
  if (place < 1) return values.front();
  if (place >= static_cast<double>(values.size())) return values.back();
  const double whole = std::floor(place);
  const auto below = static_cast<size_t>(whole) - 1;
  return values[below] + (place - whole) * (values[below + 1] - values[below]);
}

double OfSorted(Aggregator aggregator, const std::vector<double>& values, bool integers) {
  const Percentile* percentile = FindPercentile(aggregator);
  if (percentile == nullptr) return values[values.size() / 2];
  // As in OpenTSDB 2.4, which estimates in the way asked for only where all are whole numbers.
  const Estimate estimate = integers ? percentile->estimate : Estimate::kLegacy;
  return ValueAt(PlaceOf(*percentile, estimate, values.size()), values);
}

std::optional<int64_t> Narrow(Wide number) {
  if (number > std::numeric_limits<int64_t>::max() ||
      number < std::numeric_limits<int64_t>::min()) {
    return std::nullopt;
  }
  return static_cast<int64_t>(number);
}

Wide SumOf(const std::vector<int64_t>& values) {
  return std::accumulate(values.begin(), values.end(), Wide{0});
}

int64_t Product(const std::vector<int64_t>& values) {
  uint64_t product = 1;
  for (const int64_t value : values) product *= static_cast<uint64_t>(value);
  return static_cast<int64_t>(product);
}

std::optional<int64_t> SquareSum(const std::vector<int64_t>& values) {
  Wide sum = 0;
  for (const int64_t value : values) {
    sum += static_cast<Wide>(value) * value;
    if (!Narrow(sum)) return std::nullopt;
  }
  return Narrow(sum);
}

bool Sorts(Aggregator aggregator) {
  return aggregator == Aggregator::kMedian || FindPercentile(aggregator) != nullptr;
}

}  // namespace

Aggregator Basis(Aggregator aggregator) {
  switch (aggregator) {
    case Aggregator::kZimsum:
    case Aggregator::kPfsum:
      return Aggregator::kSum;
    case Aggregator::kMimmin:
      return Aggregator::kMin;
    case Aggregator::kMimmax:
      return Aggregator::kMax;
    default:
      return aggregator;
  }
}

bool NeedsAllValues(Aggregator aggregator) {
  if (PercentileOf(aggregator) > 0) return false;
  switch (Basis(aggregator)) {
    case Aggregator::kSum:
    case Aggregator::kAvg:
    case Aggregator::kMin:
    case Aggregator::kMax:
    case Aggregator::kCount:
    case Aggregator::kNone:
    case Aggregator::kSquareSum:
      return false;
    default:
      return true;
  }
}

void Accumulator::Add(double value) {
  if (std::isnan(value)) return;
  ++count_;
  if (count_ == 1) first_ = value;
  last_ = value;
  switch (aggregator_) {
    case Aggregator::kMin:
      value_ = count_ == 1 ? value : std::min(value_, value);
      break;
    case Aggregator::kMax:
      value_ = count_ == 1 ? value : std::max(value_, value);
      break;
    case Aggregator::kSum:
    case Aggregator::kAvg:
      value_ += value;
      break;
    case Aggregator::kSquareSum:
      value_ += value * value;
      break;
    case Aggregator::kMult:
      value_ = count_ == 1 ? value : value_ * value;
      break;
    case Aggregator::kDev: {  // Welford's method
      const double distance = value - value_;
      value_ += distance / static_cast<double>(count_);
      squares_ += distance * (value - value_);
      break;
    }
    default:
      if (Sorts(aggregator_)) values_.push_back(value);
  }
}

double Accumulator::Get() {
  const auto count = static_cast<double>(count_);
  if (aggregator_ == Aggregator::kCount) return count;
  if (count_ == 0) return kNan;
  switch (aggregator_) {
    case Aggregator::kAvg:
      return value_ / count;
    case Aggregator::kDev:
      return std::sqrt(squares_ / count);
    case Aggregator::kDiff:
      return last_ - first_;
    case Aggregator::kFirst:
      return first_;
    case Aggregator::kLast:
    case Aggregator::kNone:
      return last_;
    default:
      break;
  }
  if (!Sorts(aggregator_)) return value_;
  std::sort(values_.begin(), values_.end());
  return OfSorted(aggregator_, values_, false);
}

void Accumulator::Clear() {
  count_ = 0;
  value_ = 0;
  squares_ = 0;
  values_.clear();
}

double Fold(Aggregator aggregator, std::vector<double>& values) {
  if (!NeedsAllValues(aggregator)) {
    GroupValues exact(aggregator, 1);
    for (const double value : values) exact.Add(0, value);
    return exact.Get(0);
  }
  Accumulator all(aggregator);
  for (const double value : values) all.Add(value);
  return all.Get();
}

std::optional<int64_t> FoldIntegers(Aggregator aggregator, std::vector<int64_t>& values) {
  switch (Basis(aggregator)) {
    case Aggregator::kSum:
      return Narrow(SumOf(values));
    case Aggregator::kAvg:
      return Narrow(SumOf(values) / static_cast<Wide>(values.size()));
    case Aggregator::kMin:
      return *std::min_element(values.begin(), values.end());
    case Aggregator::kMax:
      return *std::max_element(values.begin(), values.end());
    case Aggregator::kCount:
      return static_cast<int64_t>(values.size());
    case Aggregator::kMult:
      return Product(values);
    case Aggregator::kSquareSum:
      return SquareSum(values);
    case Aggregator::kFirst:
      return values.front();
    case Aggregator::kLast:
      return values.back();
    case Aggregator::kDiff:
      return Narrow(static_cast<Wide>(values.back()) - values.front());
    case Aggregator::kMedian:
      std::sort(values.begin(), values.end());
      return values[values.size() / 2];
    default:
      return std::nullopt;
  }
}

double FoldCutOff(Aggregator aggregator, std::vector<double>& values) {
  if (FindPercentile(aggregator) != nullptr) {
    std::sort(values.begin(), values.end());
    return std::trunc(OfSorted(aggregator, values, true));
  }
  return std::trunc(Fold(aggregator, values));
}

bool KeepsOneValue(Aggregator function) {
  return function != Aggregator::kCount && function != Aggregator::kSquareSum &&
         function != Aggregator::kDev && function != Aggregator::kDiff;
}

}  // namespace sonde
