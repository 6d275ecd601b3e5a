// Student's t distribution, of which intervals need one number.
//
// Thread safety: functions without state.
#pragma once

#include <array>
#include <cstddef>

namespace sonde {

// The 97.5th percentile, by degrees of freedom from 1 on: of 95 % of the samples of a normal
// distribution, the mean lies within so many standard errors of the true one. (Student, "The
// probable error of a mean", Biometrika 6, 1908.)
inline double StudentT(size_t degrees) {
  constexpr std::array<double, 30> kT = {12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306,
                                         2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
                                         2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064,
                                         2.060, 2.056, 2.052, 2.048, 2.045, 2.042};
  return degrees <= kT.size() ? kT[degrees - 1] : 1.96;
}

// The t beyond which a sample lies with that chance, above 0 and at most 0.5.
double StudentBeyond(double chance, size_t degrees);

}  // namespace sonde
