#include "insight/scaling/quality.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace sonde::insight {

double Smape(const Curve& curve, const Runs& runs) {
  double sum = 0;
  for (size_t i = 0; i < runs.places.size(); ++i) {
    const double predicted = curve.left_out()[i];
    // Without that place there is no such curve: it says nothing.
    sum += std::isnan(predicted) ? 2 : RelativeError(predicted, runs.places[i].mean);
  }
  return 100 * sum / static_cast<double>(runs.places.size());
}

double SquaresLeft(const Curve& curve, const Runs& runs) {
  double sum = 0;
  for (const RunsAtPlace& at : runs.places) {
    const double residual = at.mean - curve.At(at.place);
    sum += residual * residual;
  }
  return sum;
}

double AdjustedR2(const Curve& curve, const Runs& runs) {
  const auto n = static_cast<double>(runs.places.size());
  const auto k = static_cast<double>(curve.products().size());
  double mean = 0, total = 0;
  for (const RunsAtPlace& at : runs.places) mean += at.mean / n;
  for (const RunsAtPlace& at : runs.places) total += (at.mean - mean) * (at.mean - mean);
  if (k == 0 || n <= k + 1 || !(total > 0)) return 0;
  return 1 - SquaresLeft(curve, runs) / total * (n - 1) / (n - k - 1);
}

double CrossValidation(const Curve& curve, const Runs& runs) {
  const auto n = static_cast<double>(runs.count);
  const double rest = n - static_cast<double>(curve.size());
  if (rest <= 0) return std::numeric_limits<double>::infinity();
  return n * curve.error() / (rest * rest);
}

void SetQuality(const Runs& runs, ScalingModel& model) {
  model.rss = SquaresLeft(model.curve, runs);
  model.smape = Smape(model.curve, runs);
  model.adjusted_r2 = AdjustedR2(model.curve, runs);
  model.noise = runs.Noise();
  model.runs = runs.count;
  model.left_out = runs.left_out;
  model.places = runs.places.size();
  model.least = model.most = runs.places.front().place;
  model.positive = true;
  std::set<double> first, second;
  for (const RunsAtPlace& at : runs.places) {
    first.insert(at.place.first);
    second.insert(at.place.second);
    model.positive = model.positive && at.runs.front() >= 0;
  }
  model.sizes = {first.size(), second.size()};
  model.least = {*first.begin(), *second.begin()};
  model.most = {*first.rbegin(), *second.rbegin()};
}

}  // namespace sonde::insight
