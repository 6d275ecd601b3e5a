#include "daemon/collect/counters/formula.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "daemon/collect/read/parse.h"

namespace sonde::collect {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool StartsName(char c) { return (c >= 'a' && c <= 'z') || c == '_'; }

}  // namespace

class Formula::Parser {
 public:
  Parser(std::string_view text, Formula& formula) : text_(text), formula_(formula) {}

  Status Run() {
    Expression(0);
    Blanks();
    if (status_.ok() && at_ < text_.size()) Fail("an operator or the end");
    return std::move(status_);
  }

 private:
  static constexpr int kMaxDepth = 16;

  void Fail(std::string_view expected) {
    if (!status_.ok()) return;
    status_ = {Code::kInvalid,
               fmt::format("formula \"{}\": expected {} at column {}", text_, expected, at_ + 1)};
  }
  void Add(Op op, uint8_t name = 0, double number = 0) {
    if (formula_.steps_.size() == kMaxSteps) return Fail("fewer terms: this is too long");
    formula_.steps_.push_back({op, name, number});
  }
  void Blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }
  // One of the characters, or 0.
  char Take(std::string_view characters) {
    Blanks();
    if (at_ == text_.size() || characters.find(text_[at_]) == std::string_view::npos) return 0;
    return text_[at_++];
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
    if (Take("(") != 0) {
      Expression(depth + 1);
      if (status_.ok() && Take(")") == 0) Fail("')'");
      return;
    }
    if (at_ < text_.size() && StartsName(text_[at_])) return Name();
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
  void Name() {
    const size_t start = at_;
    while (at_ < text_.size() && (StartsName(text_[at_]) || IsDigit(text_[at_]))) ++at_;
    const std::string_view name = text_.substr(start, at_ - start);
    std::vector<std::string>& names = formula_.names_;
    const auto known = std::find(names.begin(), names.end(), name);
    const auto index = static_cast<uint8_t>(known - names.begin());  // fewer than kMaxSteps
    if (known == names.end()) names.emplace_back(name);
    Add(Op::kName, index);
  }

  std::string_view text_;
  Formula& formula_;
  size_t at_ = 0;
  Status status_;
};

Result<Formula> Formula::Parse(std::string_view text) {
  Formula formula;
  formula.text_ = text;
  SONDE_RETURN_IF_ERROR(Parser(text, formula).Run());
  return formula;
}

double Formula::Evaluate(std::span<const double> values) const {
  std::array<double, kMaxSteps> stack{};
  size_t top = 0;
  for (const Step& step : steps_) {
    switch (step.op) {
      case Op::kNumber:
        stack[top++] = step.number;
        continue;
      case Op::kName:
        stack[top++] = step.name < values.size() ? values[step.name] : kMissing;
        continue;
      case Op::kNegate:
        stack[top - 1] = -stack[top - 1];
        continue;
      default:
        break;
    }
    const double right = stack[--top];
    double& left = stack[top - 1];
    if (step.op == Op::kAdd) left += right;
    if (step.op == Op::kSubtract) left -= right;
    if (step.op == Op::kMultiply) left *= right;
    if (step.op == Op::kDivide) left /= right;
  }
  return top == 1 && std::isfinite(stack[0]) ? stack[0] : kMissing;
}

}  // namespace sonde::collect
