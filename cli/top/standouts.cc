#include "cli/top/standouts.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace sonde::cli::top {
namespace {

bool StandsOut(Column column, double value, double median) {
  switch (column) {
    case Column::kCpu:
    case Column::kGpu:
      return value < 0.75 * median && value <= median - 0.1;
    case Column::kMemory:
      return value >= 0.9 || value >= median + 0.25;
    case Column::kMpi:
      return value >= median + 0.2;
    default:
      return false;
  }
}

}  // namespace

double MedianOf(std::span<const double> values) {
  std::vector<double> known;
  known.reserve(values.size());
  std::copy_if(values.begin(), values.end(), std::back_inserter(known),
               [](double value) { return !std::isnan(value); });
  if (known.empty()) return kNoValue;
  const auto middle = known.begin() + static_cast<ptrdiff_t>(known.size() / 2);
  std::nth_element(known.begin(), middle, known.end());
  return *middle;
}

std::optional<Standout> StandoutOf(Column column, std::span<const double> values) {
  const double median = MedianOf(values);
  if (std::isnan(median)) return std::nullopt;
  const bool low = InfoOf(column).low_is_worst;
  Standout out;
  size_t count = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(values[i]) || !StandsOut(column, values[i], median)) continue;
    if (count++ == 0 || (low ? values[i] < out.value : values[i] > out.value)) {
      out.place = i;
      out.value = values[i];
    }
  }
  if (count == 0) return std::nullopt;
  out.median = median;
  out.others = count - 1;
  return out;
}

}  // namespace sonde::cli::top
