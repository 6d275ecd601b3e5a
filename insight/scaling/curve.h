// A curve through measured places: a constant and products of terms, each times its coefficient,
// found by least squares.
//
// The squares are those of relative errors: noise of a run grows with its value, and where sizes
// double, the largest run alone would otherwise decide. So each place has the weight
// runs / value^2, with the measured value at first and then with the curve's. (Iteratively
// reweighted least squares: Carroll, Ruppert, "Transformation and Weighting in Regression", 1988,
// chapter 2.)
//
// Thread safety: values and functions without state.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "insight/scaling/runs.h"
#include "insight/scaling/terms.h"

namespace sonde::insight {

// The terms of the parameters, multiplied.
struct Product {
  std::optional<ScaleTerm> first;
  std::optional<ScaleTerm> second;
  double At(const Place& place) const;
  std::string Text(std::string_view first_name, std::string_view second_name) const;
  bool operator==(const Product&) const = default;
};

class Curve {
 public:
  static constexpr size_t kMost = 3;  // coefficients

  Curve() = default;
  // The curve of these products, at most kMost - 1, through the means of the places. Nothing if the
  // places do not determine its coefficients.
  static std::optional<Curve> Through(const Runs& runs, std::vector<Product> products);
  // That with known coefficients, which has no band.
  static Curve Of(double constant, std::vector<Product> products, std::vector<double> factors);

  double At(const Place& place) const;
  const std::vector<Product>& products() const { return products_; }
  double constant() const { return coefficients_[0]; }
  // Of the product with that index.
  double coefficient(size_t product) const { return coefficients_[product + 1]; }
  // Of coefficients, with the constant.
  size_t size() const { return products_.size() + 1; }

  // Sum over all runs that count of the squared relative errors, each the difference divided by
  // the mean of the two values, which is no more than 2.
  double error() const { return error_; }
  // The variance of the curve there, if the relative errors have the variance 1.
  double Leverage(const Place& place) const;
  // What the curve without that place says of the place; NaN if the others do not determine it.
  const std::vector<double>& left_out() const { return left_out_; }

 private:
  bool Solve(const Runs& runs, const std::vector<double>& weights);
  void RoundConstant(const Runs& runs);
  void Judge(const Runs& runs);
  std::array<double, kMost> RowAt(const Place& place) const;

  std::vector<Product> products_;
  std::array<double, kMost> coefficients_{};
  std::array<std::array<double, kMost>, kMost> triangle_{};  // R of X = Q R
  std::vector<double> left_out_;
  double error_ = 0;
};

// 2 |a - b| / (|a| + |b|), 0 to 2.
double RelativeError(double a, double b);

}  // namespace sonde::insight
