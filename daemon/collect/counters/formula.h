// Arithmetic over counters: what makes instructions per cycle of instructions and cycles.
//
//   expression  term {("+" | "-") term}
//   term        factor {("*" | "/") factor}
//   factor      number | name | "(" expression ")" | "-" factor
//
// A name is [a-z_][a-z0-9_]*. Formulas come from files a site may write, so their length and depth
// are bounded.
//
// Thread safety: a value; Evaluate may be called by many threads.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

namespace sonde::collect {

class Formula {
 public:
  static constexpr size_t kMaxSteps = 64;

  // kInvalid says what was expected and where.
  static Result<Formula> Parse(std::string_view text);

  const std::string& text() const { return text_; }
  // Each once, in the order of their first use.
  const std::vector<std::string>& names() const { return names_; }
  // `values` are those of names(), in their order. A missing value (NaN), and a result that is not
  // finite (a division by zero), give kMissing. Allocates nothing.
  double Evaluate(std::span<const double> values) const;

 private:
  enum class Op : uint8_t { kNumber, kName, kAdd, kSubtract, kMultiply, kDivide, kNegate };
  struct Step {
    Op op;
    uint8_t name = 0;
    double number = 0;
  };
  class Parser;

  std::string text_;
  std::vector<Step> steps_;  // in reverse Polish order
  std::vector<std::string> names_;
};

}  // namespace sonde::collect
