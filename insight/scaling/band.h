// What a model says of runs of a size, and how sure that is.
//
// The band holds the value of 95 % of new runs, if the model's terms are those of the metric. It is
// the union, over the model's curve and those that are about as good (search.h), of
//
//   f(p) -+ sqrt((bound - error) * leverage(p) + t^2 * s^2 * f(p)^2)
//
// with the bound and the t of search.h, the curve's error and leverage (curve.h), and the variance
// s^2 = error of the best curve / degrees. The first summand is the profile likelihood interval of
// the curve, which for the best curve alone is t^2 s^2 leverage, as in any textbook; the second is
// the noise of one run. So the band of an extrapolation widens where the runs allow terms that
// grow differently.
//
// Thread safety: functions without state.
#pragma once

#include <optional>

#include "insight/scaling/model.h"

namespace sonde::insight {

struct Band {
  double low = 0;
  double high = 0;
};
// Of one run at the place. Nothing if there are not enough runs to tell.
std::optional<Band> BandAt(const ScalingModel& model, const Place& place);
// Of the mean of many runs: the same without the noise of one.
std::optional<Band> MeanBandAt(const ScalingModel& model, const Place& place);

// By which factor the place lies beyond what was measured, of the parameter that is furthest
// beyond; 1: within.
double BeyondMeasured(const ScalingModel& model, const Place& place);

}  // namespace sonde::insight
