#include "core/formula/formula.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

namespace sonde {
namespace {

constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool StartsName(char c) { return (c >= 'a' && c <= 'z') || c == '_'; }

}  // namespace

class Formula::Parser {
 public:
  Parser(std::string_view text, Kind kind, Formula& formula)
      : text_(text), conditions_(kind == Kind::kCondition), formula_(formula) {}

  Status Run() {
    Whole(0);
    Blanks();
    if (status_.ok() && at_ < text_.size()) Fail("an operator or the end");
    return std::move(status_);
  }

 private:
  static constexpr int kMaxDepth = 16;
  struct Word {
    std::string_view text;
    Op op;
    int values;  // that it is of
  };
  // The longer ones first.
  static constexpr Word kComparisons[] = {{"<=", Op::kAtMost, 2}, {">=", Op::kAtLeast, 2},
                                          {"==", Op::kEqual, 2},  {"!=", Op::kUnequal, 2},
                                          {"<", Op::kLess, 2},    {">", Op::kMore, 2}};
  static constexpr Word kFunctions[] = {{"min", Op::kMin, 2},          {"max", Op::kMax, 2},
                                        {"known_or", Op::kKnownOr, 2}, {"not", Op::kNot, 1},
                                        {"known", Op::kKnown, 1},      {"ceil", Op::kCeil, 1},
                                        {"floor", Op::kFloor, 1},      {"round", Op::kRound, 1}};

  void Fail(std::string_view expected) {
    if (!status_.ok()) return;
    status_ = {Code::kInvalid,
               fmt::format("formula \"{}\": expected {} at column {}", text_, expected, at_ + 1)};
  }
  void Add(Op op, uint8_t name = 0, double number = 0) {
    const size_t most = conditions_ ? kMaxConditionSteps : kMaxSteps;
    if (formula_.steps_.size() == most) return Fail("fewer terms: this is too long");
    formula_.steps_.push_back({op, name, number});
  }
  bool IsBlank(char c) const {
    return c == ' ' || c == '\t' || (conditions_ && (c == '\n' || c == '\r'));
  }
  void Blanks() {
    while (at_ < text_.size() && IsBlank(text_[at_])) ++at_;
  }
  // One of the characters, or 0.
  char Take(std::string_view characters) {
    Blanks();
    if (at_ == text_.size() || characters.find(text_[at_]) == std::string_view::npos) return 0;
    return text_[at_++];
  }
  std::string_view NameHere() const {
    size_t end = at_;
    while (end < text_.size() && (StartsName(text_[end]) || IsDigit(text_[end]))) ++end;
    return text_.substr(at_, end - at_);
  }
  bool TakeWord(std::string_view word) {
    Blanks();
    if (!status_.ok() || NameHere() != word) return false;
    at_ += word.size();
    return true;
  }

  // What may stand by itself and between parentheses.
  void Whole(int depth) { conditions_ ? Either(depth) : Expression(depth); }
  void Either(int depth) {
    Both(depth);
    while (TakeWord("or")) {
      Both(depth);
      Add(Op::kOr);
    }
  }
  void Both(int depth) {
    Compared(depth);
    while (TakeWord("and")) {
      Compared(depth);
      Add(Op::kAnd);
    }
  }
  void Compared(int depth) {
    Expression(depth);
    Blanks();
    if (!status_.ok()) return;
    for (const Word& comparison : kComparisons) {
      if (!text_.substr(at_).starts_with(comparison.text)) continue;
      at_ += comparison.text.size();
      Expression(depth);
      return Add(comparison.op);
    }
  }
  void Expression(int depth) {
    Term(depth);
    while (const char c = status_.ok() ? Take("+-") : '\0') {
      Term(depth);
      Add(c == '+' ? Op::kAdd : Op::kSubtract);
    }
  }
  void Term(int depth) {
    Factor(depth);
    while (const char c = status_.ok() ? Take("*/") : '\0') {
      Factor(depth);
      Add(c == '*' ? Op::kMultiply : Op::kDivide);
    }
  }
  void Factor(int depth) {
    if (!status_.ok()) return;
    if (depth == kMaxDepth) return Fail("fewer parentheses and signs within each other");
    if (Take("-") != 0) {
      Factor(depth + 1);
      return Add(Op::kNegate);
    }
    Primary(depth);
    if (!conditions_ || !status_.ok() || Take("^") == 0) return;
    Factor(depth + 1);
    Add(Op::kPower);
  }
  void Primary(int depth) {
    if (Take("(") != 0) {
      Whole(depth + 1);
      if (status_.ok() && Take(")") == 0) Fail("')'");
      return;
    }
    if (at_ < text_.size() && StartsName(text_[at_])) return Name(depth);
    Number();
  }
  void Number() {
    double number = 0;
    const char* const begin = text_.data() + at_;
    // Neither "inf" nor "nan": a number starts with a digit here.
    if (at_ == text_.size() || !IsDigit(*begin)) return Fail("a number, a name or '('");
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), number);
    if (error != std::errc()) return Fail("a number that can be represented");
    at_ += static_cast<size_t>(end - begin);
    Add(Op::kNumber, 0, number);
  }
  void Name(int depth) {
    const std::string_view name = NameHere();
    if (conditions_ && (name == "and" || name == "or")) return Fail("a number, a name or '('");
    at_ += name.size();
    if (conditions_ && Take("(") != 0) return Call(name, depth);
    std::vector<std::string>& names = formula_.names_;
    const auto known = std::find(names.begin(), names.end(), name);
    const auto index = static_cast<uint8_t>(known - names.begin());  // as many as steps at most
    if (known == names.end()) names.emplace_back(name);
    Add(Op::kName, index);
  }
  void Call(std::string_view name, int depth) {
    for (const Word& function : kFunctions) {
      if (function.text != name) continue;
      Whole(depth + 1);
      if (function.values == 2) {
        if (status_.ok() && Take(",") == 0) return Fail("','");
        Whole(depth + 1);
      }
      if (status_.ok() && Take(")") == 0) return Fail("')'");
      return Add(function.op);
    }
    Fail("min, max, not, known, known_or, ceil, floor or round before '('");
  }

  std::string_view text_;
  const bool conditions_;
  Formula& formula_;
  size_t at_ = 0;
  Status status_;
};

Result<Formula> Formula::Parse(std::string_view text, Kind kind) {
  Formula formula;
  formula.text_ = text;
  SONDE_RETURN_IF_ERROR(Parser(text, kind, formula).Run());
  return formula;
}

double Formula::OfOne(Op op, double x) {
  switch (op) {
    case Op::kNegate:
      return -x;
    case Op::kNot:
      return std::isnan(x) ? kMissing : x == 0;
    case Op::kKnown:
      return !std::isnan(x);
    case Op::kCeil:
      return std::ceil(x);
    case Op::kFloor:
      return std::floor(x);
    case Op::kRound:
      return std::round(x);
    default:
      return kMissing;
  }
}

double Formula::OfTwo(Op op, double a, double b) {
  const bool known = !std::isnan(a) && !std::isnan(b);
  const auto of = [known](double value) { return known ? value : kMissing; };
  switch (op) {
    case Op::kAdd:
      return a + b;
    case Op::kSubtract:
      return a - b;
    case Op::kMultiply:
      return a * b;
    case Op::kDivide:
      return a / b;
    case Op::kPower:
      return std::pow(a, b);
    case Op::kLess:
      return of(a < b);
    case Op::kAtMost:
      return of(a <= b);
    case Op::kMore:
      return of(a > b);
    case Op::kAtLeast:
      return of(a >= b);
    case Op::kEqual:
      return of(a == b);
    case Op::kUnequal:
      return of(a != b);
    case Op::kAnd:
      return a == 0 || b == 0 ? 0 : of(1);
    case Op::kOr:
      return (!std::isnan(a) && a != 0) || (!std::isnan(b) && b != 0) ? 1 : of(0);
    case Op::kMin:
      return of(std::min(a, b));
    case Op::kMax:
      return of(std::max(a, b));
    case Op::kKnownOr:
      return std::isnan(a) ? b : a;
    default:
      return kMissing;
  }
}

double Formula::Evaluate(std::span<const double> values) const {
  std::array<double, kMaxConditionSteps> stack;  // NOLINT(*-member-init): of each tick
  size_t top = 0;
  for (const Step& step : steps_) {
    if (step.op == Op::kNumber) {
      stack[top++] = step.number;
    } else if (step.op == Op::kName) {
      stack[top++] = step.name < values.size() ? values[step.name] : kMissing;
    } else if (IsOfOne(step.op)) {
      stack[top - 1] = OfOne(step.op, stack[top - 1]);
    } else {
      --top;
      stack[top - 1] = OfTwo(step.op, stack[top - 1], stack[top]);
    }
  }
  return top == 1 && std::isfinite(stack[0]) ? stack[0] : kMissing;
}

}  // namespace sonde
