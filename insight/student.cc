#include "insight/student.h"

#include <cmath>
#include <numbers>

namespace sonde {
namespace {

// The probability that |t| is below this, as a finite sum (Abramowitz, Stegun, "Handbook of
// Mathematical Functions", 1964, 26.7.3 and 26.7.4).
double Within(double t, size_t degrees) {
  const double angle = std::atan(t / std::sqrt(static_cast<double>(degrees)));
  const double square = std::cos(angle) * std::cos(angle);
  const bool odd = degrees % 2 == 1;
  double term = odd ? std::cos(angle) : 1;
  double sum = degrees == 1 ? 0 : term;
  for (size_t k = odd ? 3 : 2; k + 2 <= degrees; k += 2) {
    const auto n = static_cast<double>(k);
    term *= square * (n - 1) / n;
    sum += term;
  }
  const double sine = std::sin(angle) * sum;
  return odd ? 2 / std::numbers::pi * (angle + sine) : sine;
}

}  // namespace

double StudentBeyond(double chance, size_t degrees) {
  double low = 0, high = 1;
  while ((1 - Within(high, degrees)) / 2 > chance && high < 1e12) high *= 2;
  for (int i = 0; i < 80; ++i) {
    const double middle = (low + high) / 2;
    ((1 - Within(middle, degrees)) / 2 > chance ? low : high) = middle;
  }
  return high;
}

}  // namespace sonde
