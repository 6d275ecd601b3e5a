// How well a curve describes the runs.
//
// Thread safety: functions without state.
#pragma once

#include "insight/scaling/model.h"

namespace sonde::insight {

// The mean of n symmetric absolute percentage errors, 100/n * sum of 2 |f - y| / (|f| + |y|), 0 to
// 200 %, where f is what the curve without that place says of it. (The form of Extra-P; Makridakis,
// "Accuracy measures", International Journal of Forecasting 9, 1993.)
double Smape(const Curve& curve, const Runs& runs);
// Residual sum of squares over the means of the places.
double SquaresLeft(const Curve& curve, const Runs& runs);
// 1 - (1 - R2) (n - 1) / (n - k - 1) for n places and k terms; 0 of a constant. (Theil, "Economic
// Forecasts and Policy", 1961.)
double AdjustedR2(const Curve& curve, const Runs& runs);

// Generalized cross-validation, n E / (n - k)^2 for n runs, the sum E of the squared errors and k
// coefficients: the least one predicts runs best that were left out. (Golub, Heath, Wahba,
// "Generalized Cross-Validation as a Method for Choosing a Good Ridge Parameter", Technometrics 21,
// 1979.) Among curves of as many coefficients it is the one with the least error.
double CrossValidation(const Curve& curve, const Runs& runs);

// Fills the fields of the model that say how good its curve is, and of which runs it was made.
void SetQuality(const Runs& runs, ScalingModel& model);

}  // namespace sonde::insight
