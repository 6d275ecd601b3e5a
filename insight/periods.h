// Whether a series repeats itself, and how often: of a program that writes a checkpoint every five
// minutes, 1/300 Hz.
//
// The candidates are those of FTIO (Tarraf, Bandet, Boito, Pallez, Wolf: "Capturing Periodic I/O
// Using Frequency Techniques", IPDPS 2024; github.com/tuda-parallel/FTIO 0.0.9,
// ftio/analysis/anomaly_detection.py):
//
//   P_k = |X_k|^2 / n                 the power of each frequency k / (n interval), k = 1 ... n / 2
//   z_k = (P_k - mean P) / sd P       its Z-score
//   candidates                        z_k > 3 and z_k > tolerance * max z; not the harmonics of a
//                                     lower one; if more than two are left there is none
//   confidence of k                   (z_k / sum of z over the candidates +
//                                      z_k / sum of z over all with z > 3) / 2
//
// (FTIO adds |z|; it differs only below the mean.) Noise has such candidates too: the greatest of m
// powers of white noise is ln m times their mean, so z > 3 for nearly every series of 100 points,
// and memory that wanders has nearly all of its power in the lowest frequencies. (Of 120, 300 and
// 600 points, 50 series each, FTIO 0.0.9 names a frequency for 118 of white noise and for all 150
// random walks.) So a candidate is a period T here only if the series says so itself, by its
// autocorrelation
//
//   r_L = sum of y_t y_(t + L) / number of its terms / variance
//
//   - five of them fit into the series, and one is two points long or longer;
//   - r has peaks near T and 2 T, each of kAgain or more, and their mean lies that much above the
//     lowest r between T / 2 and T;
//   - their mean is more than three standard errors of what a series that does not repeat itself
//     would have at so large a lag: (1 + 2 * sum of r_L^2 for L <= T / 2) / n is the variance
//     (Bartlett, "On the theoretical specification and sampling properties of autocorrelated
//     time-series", J. R. Stat. Soc. Suppl. 8, 1946; Box and Jenkins, "Time Series Analysis", 1976,
//     2.1.6).
//
// Of 5,000 series each of noise that is white, that remembers (0.5, 0.9 and 0.98 of each value stay
// in the next), of random walks, of bursts and of switches at random times, with 60 to 3,000
// points, 11 of 35,000 were taken for periodic, 9 of them bursts;
// tests/unit/insight_periods_test.cc has some of them. If T is not confirmed, 2 T and 3 T are
// tried, as far as their Z-scores are above 3: of short bursts a harmonic may be the strongest. Of
// two candidates the one with the greater r is dominant. The period is the distance of the peaks
// near its multiples, over as many as follow each other in the first half of the lags, so it is
// much finer than the frequencies of the transform.
//
// A straight line is taken off first, by least squares: else a drift would be all that is seen. A
// point that is missing lies on that line, where it adds nothing to any frequency. Periods of less
// than two intervals cannot be told from longer ones.
//
// Thread safety: values and functions without state.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/status.h"

namespace sonde::insight {

struct PeriodOptions {
  double tolerance = 0.8;   // above 0, up to 1
  bool power = true;        // false: Z-scores of |X_k|
  size_t frequencies = 10;  // in Periodicity::strongest, at most
};

// amplitude * 2 / samples * cos(2 pi frequency t + phase), t in seconds since the first value. Of
// the highest frequency of an even number of values it is half of that.
struct Wave {
  double frequency = 0;   // Hz
  double confidence = 0;  // 0 to 1; 0 of what is no candidate, and if there is no period
  double amplitude = 0;   // |X_k|, in the values' unit
  double phase = 0;       // -pi to pi
};

struct Periodicity {
  static constexpr size_t kFewestPoints = 24;  // that are there, and half of all
  static constexpr double kFewestCycles = 5;
  static constexpr double kAgain = 0.4;

  std::optional<Wave> dominant;  // nothing: there is no period
  std::vector<Wave> strongest;   // by amplitude, without the mean
  std::optional<double> period;  // in seconds, as the series itself says
  double correlation = 0;        // mean of r at the period and at twice the period
  std::string why_not;           // if there is no period
  size_t samples = 0;
  double sampling = 0;  // Hz
};

// Of values that are `interval` seconds apart; NaN: missing. kInvalid for a wrong interval or
// tolerance, and infinite values.
Result<Periodicity> FindPeriod(std::span<const double> values, double interval,
                               const PeriodOptions& options = {});

}  // namespace sonde::insight
