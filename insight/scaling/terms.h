// The terms of the performance model normal form: p^(n/d) * log2(p)^l, of the size p of a run.
//
// The normal form: Calotoiu, Hoefler, Poke, Wolf, "Using Automated Performance Modeling to Find
// Scalability Bugs in Complex Codes", SC 2013. The exponents are those that Extra-P 4.2.5 tries
// (extrap/modelers/single_parameter/basic.py): 42 by default, and as many negative ones where they
// are allowed.
//
// Thread safety: values and functions without state.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sonde::insight {

struct ScaleTerm {
  int numerator = 0;
  int denominator = 1;
  int logs = 0;
  double At(double size) const;
  double power() const { return static_cast<double>(numerator) / denominator; }
  // As Extra-P writes it: "size^(3/2) * log2(size)^(1)".
  std::string Text(std::string_view parameter) const;
  bool operator==(const ScaleTerm&) const = default;
};

// The terms that grow, the slowest first.
const std::vector<ScaleTerm>& GrowingTerms();
// What is tried where values fall as runs get larger, as in strong scaling: the terms with negative
// exponents, and the growing ones, whose coefficient is negative then.
const std::vector<ScaleTerm>& FallingTerms();

}  // namespace sonde::insight
