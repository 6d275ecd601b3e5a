#include "tests/surfaces/tally.h"

#include <fmt/core.h>

#include <cmath>
#include <utility>

namespace sonde::surfaces {

void Tally::Ask(std::string surface, std::string question) {
  surface_ = std::move(surface);
  question_ = std::move(question);
  question_differs_ = false;
  ++questions_;
}

void Tally::Compare(const std::string& where, const Number& expected, double shown) {
  if (expected.too_rough) return Skip("rates of counters near 2^63, of which rows lose the digits");
  ++numbers_;
  const auto is = [&](double value) {
    if (std::isnan(value) || std::isnan(shown)) return std::isnan(value) && std::isnan(shown);
    return value == shown || std::fabs(value - shown) <= expected.error;
  };
  if (is(expected.value) || (expected.earlier && is(*expected.earlier))) return;
  if (expected.of_rows &&
      (is(*expected.of_rows) || std::fabs(*expected.of_rows - shown) <= expected.error_of_rows)) {
    return;
  }
  Differ(fmt::format("{}: expected {:.17g}{}, got {:.17g}", where, expected.value,
                     expected.error > 0 ? fmt::format(" +- {:.3g}", expected.error) : "", shown));
}

void Tally::Compare(const std::string& where, const std::string& expected,
                    const std::string& shown) {
  ++numbers_;
  if (expected != shown) Differ(fmt::format("{}: expected '{}', got '{}'", where, expected, shown));
}

// Of each question the first difference is told.
void Tally::Differ(const std::string& what) {
  ++differences_;
  if (std::exchange(question_differs_, true) || told_.size() >= kMostTold) return;
  told_.push_back(fmt::format("{} {}: {}", surface_, question_, what));
}

}  // namespace sonde::surfaces
