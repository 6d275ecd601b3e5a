// Arithmetic and conditions over named values: what makes instructions per cycle of instructions
// and cycles, and when a hint is given.
//
//   expression  term {("+" | "-") term}
//   term        factor {("*" | "/") factor}
//   factor      "-" factor | primary
//   primary     number | name | "(" expression ")"
//
// and with Kind::kCondition also
//
//   condition   both {"or" both}            in the place of an expression between parentheses
//   both        compared {"and" compared}
//   compared    expression [("<" | "<=" | ">" | ">=" | "==" | "!=") expression]
//   factor      "-" factor | primary ["^" factor]
//   primary     function "(" condition ["," condition] ")"
//   function    min, max, known_or (of two), not, known, ceil, floor, round
//
// A name is [a-z_][a-z0-9_]*. Formulas come from files a site may write, so their length and depth
// are bounded.
//
// What is missing (NaN) stays missing: a comparison with it is neither true (1) nor false (0),
// `and` is false if one side is, `or` is true if one side is (Kleene's three values). known(x) is 1
// or 0, known_or(x, y) is y where x is missing.
//
// Thread safety: a value; Evaluate may be called by many threads.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

namespace sonde {

class Formula {
 public:
  enum class Kind : uint8_t { kArithmetic, kCondition };
  static constexpr size_t kMaxSteps = 64;            // of kArithmetic
  static constexpr size_t kMaxConditionSteps = 128;  // of kCondition

  // kInvalid says what was expected and where.
  static Result<Formula> Parse(std::string_view text, Kind kind = Kind::kArithmetic);

  const std::string& text() const { return text_; }
  // Each once, in the order of their first use.
  const std::vector<std::string>& names() const { return names_; }
  // `values` are those of names(), in their order. A missing value (NaN), and a result that is not
  // finite (a division by zero), give NaN. Allocates nothing.
  double Evaluate(std::span<const double> values) const;

 private:
  enum class Op : uint8_t {
    kNumber,
    kName,
    // Of one value.
    kNegate,
    kNot,
    kKnown,
    kCeil,
    kFloor,
    kRound,
    // Of two.
    kAdd,
    kSubtract,
    kMultiply,
    kDivide,
    kPower,
    kLess,
    kAtMost,
    kMore,
    kAtLeast,
    kEqual,
    kUnequal,
    kAnd,
    kOr,
    kMin,
    kMax,
    kKnownOr,
  };
  static bool IsOfOne(Op op) { return op >= Op::kNegate && op <= Op::kRound; }
  static double OfOne(Op op, double x);
  static double OfTwo(Op op, double a, double b);
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

}  // namespace sonde
