#include "insight/scaling/band.h"

#include <algorithm>
#include <cmath>

#include "insight/scaling/search.h"
#include "insight/student.h"

namespace sonde::insight {
namespace {

std::optional<Band> BandOf(const ScalingModel& model, const Place& place, double of_one_run) {
  const size_t degrees = DegreesOf(model.curve, model.runs);
  if (degrees == 0) return std::nullopt;
  const double bound = AboutAsGood(model.curve.error(), degrees);
  const double t = StudentT(degrees);
  const double noise = t * t * model.curve.error() / static_cast<double>(degrees) * of_one_run;
  std::optional<Band> band;
  const auto add = [&](const Curve& curve) {
    const double value = curve.At(place);
    const double half = std::sqrt(std::max(0.0, bound - curve.error()) * curve.Leverage(place) +
                                  noise * value * value);
    if (!band) band = Band{value - half, value + half};
    band->low = std::min(band->low, value - half);
    band->high = std::max(band->high, value + half);
  };
  add(model.curve);
  for (const Curve& curve : model.others) add(curve);
  if (model.positive) band->low = std::max(band->low, 0.0);
  return band;
}

double Beyond(double size, double least, double most) {
  return std::max({1.0, size / most, least / size});
}

}  // namespace

std::optional<Band> BandAt(const ScalingModel& model, const Place& place) {
  return BandOf(model, place, 1);
}

std::optional<Band> MeanBandAt(const ScalingModel& model, const Place& place) {
  return BandOf(model, place, 0);
}

double BeyondMeasured(const ScalingModel& model, const Place& place) {
  return std::max(Beyond(place.first, model.least.first, model.most.first),
                  Beyond(place.second, model.least.second, model.most.second));
}

}  // namespace sonde::insight
