#include "insight/scaling/runs.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace sonde::insight {
namespace {

constexpr double kNormal = 1.4826;
constexpr double kFloor = 0.02;  // of the mean of all values

double MeanOf(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value / static_cast<double>(values.size());
  return sum;
}

double MedianOf(const std::vector<double>& ascending) {
  const size_t n = ascending.size();
  const double lower = ascending[(n - 1) / 2];
  return lower + (ascending[n / 2] - lower) / 2;
}

double Distance(double value, double from, double floor) {
  const double scale = std::max(std::abs(from), floor);
  return scale > 0 ? std::abs(value - from) / scale : 0;
}

// How far from the median of its size a run may lie; infinity where no size has two runs.
double Furthest(const Runs& runs) {
  std::vector<double> distances;
  for (const RunsAtPlace& at : runs.places) {
    const auto n = static_cast<double>(at.runs.size());
    if (n < 2) continue;
    std::vector<double> here;
    // A median of few runs lies nearer to them than their true median does.
    const double more = std::sqrt(n / (n - 1));
    for (const double value : at.runs) {
      here.push_back(more * Distance(value, MedianOf(at.runs), runs.floor));
    }
    std::sort(here.begin(), here.end());
    // Of an odd number of runs one is the median itself, and says nothing.
    const ptrdiff_t none = at.runs.size() % 2 == 1 ? 1 : 0;
    distances.insert(distances.end(), here.begin() + none, here.end());
  }
  if (distances.empty()) return std::numeric_limits<double>::infinity();
  std::sort(distances.begin(), distances.end());
  return Runs::kFar * kNormal * distances[(distances.size() - 1) / 2];
}

void LeaveOutFarOnes(Runs& runs) {
  // Rounding makes nothing far.
  const double furthest = Furthest(runs) + 1e-12;
  for (RunsAtPlace& at : runs.places) {
    // Of two runs nobody can say which one is wrong.
    if (at.runs.size() < 3) continue;
    const double median = MedianOf(at.runs);
    runs.left_out += std::erase_if(
        at.runs, [&](double value) { return Distance(value, median, runs.floor) > furthest; });
  }
}

}  // namespace

double Runs::Noise() const {
  if (count == places.size()) return std::numeric_limits<double>::quiet_NaN();
  return std::sqrt(within / static_cast<double>(count - places.size()));
}

Result<Runs> GatherRuns(std::span<const RunAt> runs) {
  if (runs.empty()) return Status(Code::kInvalid, "no runs to make a model from");
  std::map<Place, std::vector<double>> by_place;
  Runs gathered;
  for (const auto& [place, value] : runs) {
    const bool sizes = place.first >= 1 && place.second >= 1 && std::isfinite(place.first) &&
                       std::isfinite(place.second);
    if (!sizes || !std::isfinite(value)) {
      return Status(Code::kInvalid, "expected sizes of 1 or more, and values that are numbers");
    }
    by_place[place].push_back(value);
    gathered.floor += kFloor * std::abs(value) / static_cast<double>(runs.size());
  }
  for (auto& [place, values] : by_place) {
    std::sort(values.begin(), values.end());
    gathered.places.push_back({place, std::move(values), 0});
  }
  LeaveOutFarOnes(gathered);
  for (RunsAtPlace& at : gathered.places) {
    at.mean = MeanOf(at.runs);
    gathered.count += at.runs.size();
    for (const double value : at.runs) {
      const double distance = Distance(value, at.mean, gathered.floor);
      gathered.within += distance * distance;
    }
  }
  return gathered;
}

}  // namespace sonde::insight
