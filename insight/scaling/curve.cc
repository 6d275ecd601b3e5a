#include "insight/scaling/curve.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace sonde::insight {
namespace {

// A column that keeps less of its length beside the others is one of them, but for rounding.
constexpr double kLeastRest = 1e-12;
// Of every value a constant that is less is what rounding left of none.
constexpr double kRounding = 1e-10;

std::vector<double> Weights(const Runs& runs, const std::vector<double>& values) {
  std::vector<double> weights;
  for (size_t i = 0; i < values.size(); ++i) {
    const double scale = std::max(std::abs(values[i]), runs.floor);
    const auto n = static_cast<double>(runs.places[i].runs.size());
    weights.push_back(scale > 0 ? n / (scale * scale) : n);
  }
  return weights;
}

}  // namespace

double RelativeError(double a, double b) {
  const double both = std::abs(a) + std::abs(b);
  return both > 0 ? 2 * std::abs(a - b) / both : 0;
}

double Product::At(const Place& place) const {
  return (first ? first->At(place.first) : 1) * (second ? second->At(place.second) : 1);
}

std::string Product::Text(std::string_view first_name, std::string_view second_name) const {
  std::string text = first ? first->Text(first_name) : "";
  if (first && second) text += " * ";
  return second ? text + second->Text(second_name) : text;
}

Curve Curve::Of(double constant, std::vector<Product> products, std::vector<double> factors) {
  Curve curve;
  curve.products_ = std::move(products);
  curve.coefficients_[0] = constant;
  for (size_t i = 0; i < factors.size() && i + 1 < kMost; ++i) {
    curve.coefficients_[i + 1] = factors[i];
  }
  return curve;
}

std::optional<Curve> Curve::Through(const Runs& runs, std::vector<Product> products) {
  Curve curve;
  curve.products_ = std::move(products);
  if (curve.size() > kMost || runs.places.size() < curve.size()) return std::nullopt;
  std::vector<double> values;
  for (const RunsAtPlace& at : runs.places) values.push_back(at.mean);
  for (int pass = 0; pass < 2; ++pass) {
    if (!curve.Solve(runs, Weights(runs, values))) return std::nullopt;
    for (size_t i = 0; i < values.size(); ++i) values[i] = curve.At(runs.places[i].place);
  }
  curve.RoundConstant(runs);
  curve.Judge(runs);
  return curve;
}

void Curve::RoundConstant(const Runs& runs) {
  double least = std::numeric_limits<double>::infinity();
  for (const RunsAtPlace& at : runs.places) least = std::min(least, std::abs(at.mean));
  if (std::abs(coefficients_[0]) < kRounding * least) coefficients_[0] = 0;
}

std::array<double, Curve::kMost> Curve::RowAt(const Place& place) const {
  std::array<double, kMost> row{1};
  for (size_t i = 0; i < products_.size(); ++i) row[i + 1] = products_[i].At(place);
  return row;
}

double Curve::At(const Place& place) const {
  double value = coefficients_[0];
  for (size_t i = 0; i < products_.size(); ++i) {
    value += coefficients_[i + 1] * products_[i].At(place);
  }
  return value;
}

// By the modified Gram-Schmidt process, with the values as a last column: as exact as
// Householder's (Bjorck, "Solving linear least squares problems by Gram-Schmidt
// orthogonalization", BIT 7, 1967).
bool Curve::Solve(const Runs& runs, const std::vector<double>& weights) {
  const size_t n = runs.places.size(), k = size();
  std::array<std::vector<double>, kMost> columns;
  for (size_t c = 0; c < k; ++c) columns[c].resize(n);
  std::vector<double> rest(n);
  for (size_t i = 0; i < n; ++i) {
    const double root = std::sqrt(weights[i]);
    const auto row = RowAt(runs.places[i].place);
    for (size_t c = 0; c < k; ++c) columns[c][i] = root * row[c];
    rest[i] = root * runs.places[i].mean;
  }
  const auto dot = [n](const std::vector<double>& a, const std::vector<double>& b) {
    double sum = 0;
    for (size_t i = 0; i < n; ++i) sum += a[i] * b[i];
    return sum;
  };
  const auto take = [n](std::vector<double>& from, double factor, const std::vector<double>& what) {
    for (size_t i = 0; i < n; ++i) from[i] -= factor * what[i];
  };
  triangle_ = {};
  std::array<double, kMost> along{};
  for (size_t c = 0; c < k; ++c) {
    const double whole = dot(columns[c], columns[c]);
    for (size_t b = 0; b < c; ++b) {
      triangle_[b][c] = dot(columns[b], columns[c]);
      take(columns[c], triangle_[b][c], columns[b]);
    }
    const double length = std::sqrt(dot(columns[c], columns[c]));
    if (!(length > kLeastRest * std::sqrt(whole)) || !std::isfinite(length)) return false;
    triangle_[c][c] = length;
    for (double& value : columns[c]) value /= length;
    along[c] = dot(columns[c], rest);
    take(rest, along[c], columns[c]);
  }
  for (size_t c = k; c-- > 0;) {
    double value = along[c];
    for (size_t d = c + 1; d < k; ++d) value -= triangle_[c][d] * coefficients_[d];
    coefficients_[c] = value / triangle_[c][c];
  }
  // A place that is left out changes the curve by what is known of the curve with it: the place's
  // residual is divided by one less its leverage.
  left_out_.assign(n, 0);
  for (size_t i = 0; i < n; ++i) {
    double leverage = 0;
    for (size_t c = 0; c < k; ++c) leverage += columns[c][i] * columns[c][i];
    const double one_less = 1 - leverage;
    left_out_[i] = one_less > kLeastRest
                       ? runs.places[i].mean - rest[i] / std::sqrt(weights[i]) / one_less
                       : std::numeric_limits<double>::quiet_NaN();
  }
  return true;
}

void Curve::Judge(const Runs& runs) {
  error_ = runs.within;
  for (const RunsAtPlace& at : runs.places) {
    const double error = RelativeError(At(at.place), at.mean);
    error_ += static_cast<double>(at.runs.size()) * error * error;
  }
}

double Curve::Leverage(const Place& place) const {
  const auto row = RowAt(place);
  std::array<double, kMost> z{};
  double sum = 0;
  for (size_t c = 0; c < size(); ++c) {
    double value = row[c];
    for (size_t b = 0; b < c; ++b) value -= triangle_[b][c] * z[b];
    z[c] = value / triangle_[c][c];
    sum += z[c] * z[c];
  }
  return sum;
}

}  // namespace sonde::insight
