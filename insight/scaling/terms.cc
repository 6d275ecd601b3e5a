#include "insight/scaling/terms.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace sonde::insight {
namespace {

std::vector<ScaleTerm> ByGrowth(std::vector<ScaleTerm> terms) {
  std::stable_sort(terms.begin(), terms.end(), [](const ScaleTerm& a, const ScaleTerm& b) {
    return a.power() != b.power() ? a.power() < b.power() : a.logs < b.logs;
  });
  return terms;
}

}  // namespace

const std::vector<ScaleTerm>& GrowingTerms() {
  static const std::vector<ScaleTerm> terms =
      ByGrowth({{0, 1, 1}, {0, 1, 2}, {1, 4, 0}, {1, 3, 0}, {1, 4, 1},  {1, 3, 1}, {1, 4, 2},
                {1, 3, 2}, {1, 2, 0}, {1, 2, 1}, {1, 2, 2}, {2, 3, 0},  {3, 4, 0}, {2, 3, 1},
                {3, 4, 1}, {4, 5, 0}, {2, 3, 2}, {3, 4, 2}, {1, 1, 0},  {1, 1, 1}, {1, 1, 2},
                {5, 4, 0}, {5, 4, 1}, {4, 3, 0}, {4, 3, 1}, {3, 2, 0},  {3, 2, 1}, {3, 2, 2},
                {5, 3, 0}, {7, 4, 0}, {2, 1, 0}, {2, 1, 1}, {2, 1, 2},  {9, 4, 0}, {7, 3, 0},
                {5, 2, 0}, {5, 2, 1}, {5, 2, 2}, {8, 3, 0}, {11, 4, 0}, {3, 1, 0}, {3, 1, 1}});
  return terms;
}

const std::vector<ScaleTerm>& FallingTerms() {
  static const std::vector<ScaleTerm> terms = [] {
    std::vector<ScaleTerm> all;
    for (const ScaleTerm& term : GrowingTerms()) {
      all.push_back({-term.numerator, term.denominator, -term.logs});
    }
    return ByGrowth(std::move(all));
  }();
  return terms;
}

double ScaleTerm::At(double size) const {
  return std::pow(size, power()) * std::pow(std::log2(size), logs);
}

std::string ScaleTerm::Text(std::string_view parameter) const {
  std::string text;
  if (numerator != 0) {
    text = fmt::format("{}^({}", parameter, numerator);
    text += denominator == 1 ? ")" : fmt::format("/{})", denominator);
  }
  if (logs == 0) return text;
  if (!text.empty()) text += " * ";
  return text + fmt::format("log2({})^({})", parameter, logs);
}

}  // namespace sonde::insight
