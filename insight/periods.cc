#include "insight/periods.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <numeric>

#include "insight/dft.h"

namespace sonde::insight {
namespace {

constexpr double kOutlier = 3;         // Z-scores above it, FTIO's
constexpr size_t kMostCandidates = 2;  // FTIO's
constexpr double kStandardErrors = 3;
constexpr double kFlat = 1e-10;   // of the values: what is left over is rounding
constexpr double kFollows = 0.2;  // r of a further multiple that the period is refined by
constexpr int kMostSubharmonics = 3;

// The values without their straight line; 0 where one is missing.
struct Residuals {
  std::vector<double> y;
  std::vector<double> there;  // 1 or 0
  double count = 0;
  double squares = 0;
  bool flat = false;
};

Residuals WithoutLine(std::span<const double> values) {
  Residuals out;
  const size_t n = values.size();
  double mean_t = 0, mean_x = 0, size = 0;
  for (size_t t = 0; t < n; ++t) {
    if (std::isnan(values[t])) continue;
    ++out.count;
    mean_t += static_cast<double>(t);
    mean_x += values[t];
    size += values[t] * values[t];
  }
  out.y.assign(n, 0);
  out.there.assign(n, 0);
  if (out.count == 0) return out;
  mean_t /= out.count;
  mean_x /= out.count;
  double tt = 0, tx = 0;
  for (size_t t = 0; t < n; ++t) {
    if (std::isnan(values[t])) continue;
    const double from_mean = static_cast<double>(t) - mean_t;
    tt += from_mean * from_mean;
    tx += from_mean * (values[t] - mean_x);
  }
  const double slope = tt > 0 ? tx / tt : 0;
  for (size_t t = 0; t < n; ++t) {
    if (std::isnan(values[t])) continue;
    out.there[t] = 1;
    out.y[t] = values[t] - mean_x - slope * (static_cast<double>(t) - mean_t);
    out.squares += out.y[t] * out.y[t];
  }
  out.flat = !(out.squares > kFlat * kFlat * size);
  return out;
}

// --- Candidates ---

std::vector<double> ZScores(const std::vector<std::complex<double>>& x, bool power) {
  std::vector<double> z(x.size(), 0);
  double mean = 0, variance = 0;
  const auto n = static_cast<double>(x.size() - 1);
  for (size_t k = 1; k < x.size(); ++k) {
    z[k] = power ? std::norm(x[k]) : std::abs(x[k]);
    mean += z[k] / n;
  }
  for (size_t k = 1; k < x.size(); ++k) variance += (z[k] - mean) * (z[k] - mean) / n;
  for (size_t k = 1; k < x.size(); ++k)
    z[k] = variance > 0 ? (z[k] - mean) / std::sqrt(variance) : 0;
  return z;
}

// Each of the two is known to half a step of the transform, and a harmonic's error is that of the
// lower one times its number. A neighbour counts as well.
bool IsHarmonic(size_t k, size_t lower) {
  const auto of = static_cast<double>(lower);
  const double number = std::max(1.0, std::round(static_cast<double>(k) / of));
  return std::abs(static_cast<double>(k) - number * of) <= (number + 1) / 2;
}

struct Candidates {
  std::vector<size_t> k;            // without harmonics
  std::vector<double> confidences;  // of each k
};

Candidates CandidatesOf(const std::vector<double>& z, double tolerance) {
  const double least = std::max(kOutlier, tolerance * *std::max_element(z.begin(), z.end()));
  Candidates out;
  std::vector<bool> removed(z.size());
  for (size_t k = 1; k < z.size(); ++k) {
    if (!(z[k] > least)) continue;
    removed[k] =
        std::any_of(out.k.begin(), out.k.end(), [&](size_t lower) { return IsHarmonic(k, lower); });
    if (!removed[k]) out.k.push_back(k);
  }
  double candidates = 0, outliers = 0;
  for (size_t k = 1; k < z.size(); ++k) {
    if (removed[k]) continue;
    if (z[k] > least) candidates += z[k];
    if (z[k] > kOutlier) outliers += z[k];
  }
  out.confidences.assign(z.size(), 0);
  for (size_t k = 1; k < z.size(); ++k) {
    if (removed[k]) continue;
    if (z[k] > least) out.confidences[k] += z[k] / candidates / 2;
    if (z[k] > kOutlier) out.confidences[k] += z[k] / outliers / 2;
  }
  return out;
}

// --- Autocorrelation ---

std::vector<double> Autocorrelation(const Residuals& residuals) {
  std::vector<double> r = LagSums(residuals.y);
  const size_t n = r.size();
  std::vector<double> terms;  // of each sum
  if (residuals.count >= static_cast<double>(n)) {
    for (size_t lag = 0; lag < n; ++lag) terms.push_back(static_cast<double>(n - lag));
  } else {
    terms = LagSums(residuals.there);
  }
  const double variance = residuals.squares / residuals.count;
  for (size_t lag = 0; lag < r.size(); ++lag) {
    r[lag] = terms[lag] > 0.5 ? r[lag] / std::round(terms[lag]) / variance : 0;
  }
  return r;
}

// The lag of the greatest r from `low` to `high`, as far as both of its neighbours are there too.
std::optional<size_t> PeakIn(const std::vector<double>& r, size_t low, size_t high) {
  low = std::max<size_t>(low, 1);
  high = std::min(high, r.size() - 2);
  if (low > high) return std::nullopt;
  const auto begin = r.begin() + static_cast<std::ptrdiff_t>(low);
  const auto end = r.begin() + static_cast<std::ptrdiff_t>(high) + 1;
  return static_cast<size_t>(std::max_element(begin, end) - r.begin());
}

std::optional<size_t> PeakNear(const std::vector<double>& r, double lag, double period) {
  const double margin = std::max(1.0, std::floor(period / 4));
  const double at = std::round(lag);
  return PeakIn(r, static_cast<size_t>(std::max(0.0, at - margin)),
                static_cast<size_t>(at + margin));
}

struct Confirmed {
  double period = 0;  // in intervals
  double correlation = 0;
};

// The mean distance of the peaks that follow.
double Refined(const std::vector<double>& r, double twice) {
  double period = twice / 2;
  for (int multiple = 3; multiple * period <= static_cast<double>(r.size()) / 2; ++multiple) {
    const std::optional<size_t> peak = PeakNear(r, multiple * period, period);
    if (!peak || r[*peak] < kFollows) break;
    period = static_cast<double>(*peak) / multiple;
  }
  return period;
}

double StandardError(const std::vector<double>& r, size_t lag, double count) {
  double squares = 0;
  for (size_t i = 1; i <= lag / 2; ++i) squares += r[i] * r[i];
  return std::sqrt((1 + 2 * squares) / count);
}

// Whether the series repeats itself after n / k intervals, k being known to one step or so.
std::optional<Confirmed> Confirm(const std::vector<double>& r, double k, double count) {
  const auto n = static_cast<double>(r.size());
  if (k < Periodicity::kFewestCycles) return std::nullopt;
  const auto low = static_cast<size_t>(std::max(2.0, std::floor(n / (k + 1))));
  const auto high = static_cast<size_t>(std::ceil(n / (k - 1)));
  const std::optional<size_t> once = PeakIn(r, low, high);
  if (!once || r[*once] < r[*once - 1] || r[*once] < r[*once + 1]) return std::nullopt;
  const auto lag = static_cast<double>(*once);
  const std::optional<size_t> twice = PeakNear(r, 2 * lag, lag);
  if (!twice) return std::nullopt;
  const double correlation = (r[*once] + r[*twice]) / 2;
  const auto at = [&](size_t i) { return r.begin() + static_cast<std::ptrdiff_t>(i); };
  const double trough = *std::min_element(at((*once + 1) / 2), at(*once));
  const bool again = std::min(r[*once], r[*twice]) >= Periodicity::kAgain &&
                     correlation - trough >= Periodicity::kAgain &&
                     correlation >= kStandardErrors * StandardError(r, *once, count);
  if (!again) return std::nullopt;
  const double period = Refined(r, static_cast<double>(*twice));
  // The peak may lie a step beyond the frequency that was looked for.
  if (period * (Periodicity::kFewestCycles - 0.5) > n) return std::nullopt;
  return Confirmed{period, correlation};
}

// --- The answer ---

// The step that the frequency k lies at or next to, whichever is stronger.
size_t StepOf(const std::vector<std::complex<double>>& x, double k) {
  const auto below = static_cast<size_t>(k);
  const size_t above = std::min(below + 1, x.size() - 1);
  if (k == std::floor(k)) return below;
  return std::norm(x[below]) >= std::norm(x[above]) ? below : above;
}

Wave WaveOf(const std::vector<std::complex<double>>& x, size_t k, double step, double confidence) {
  return {step * static_cast<double>(k), confidence, std::abs(x[k]), std::arg(x[k])};
}

struct Transformed {
  std::vector<std::complex<double>> x;
  std::vector<double> z;
  double step = 0;  // Hz
};

// Fills in what is dominant, or why there is nothing.
void Choose(const Residuals& residuals, const Transformed& of, const Candidates& candidates,
            Periodicity& out) {
  if (candidates.k.empty()) {
    out.why_not = "no frequency stands out";
    return;
  }
  if (candidates.k.size() > kMostCandidates) {
    out.why_not =
        fmt::format("{} frequencies stand out, none above the others", candidates.k.size());
    return;
  }
  const std::vector<double> r = Autocorrelation(residuals);
  for (const size_t k : candidates.k) {
    for (int part = 1; part <= kMostSubharmonics; ++part) {
      const double frequency = static_cast<double>(k) / part;
      const size_t nearest = StepOf(of.x, frequency);
      if (!(of.z[nearest] > kOutlier)) continue;
      const std::optional<Confirmed> found = Confirm(r, frequency, residuals.count);
      if (!found) continue;
      if (found->correlation > out.correlation) {
        out.dominant = WaveOf(of.x, nearest, of.step, candidates.confidences[k]);
        out.correlation = found->correlation;
        out.period = found->period / out.sampling;
      }
      break;
    }
  }
  if (!out.dominant) out.why_not = "what stands out does not come back regularly";
}

std::vector<Wave> Strongest(const Transformed& of, const Candidates& candidates, size_t most,
                            bool periodic) {
  std::vector<size_t> order(of.x.size() - 1);
  std::iota(order.begin(), order.end(), 1);
  most = std::min(most, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(most), order.end(),
                    [&](size_t a, size_t b) {
                      const double one = std::norm(of.x[a]), other = std::norm(of.x[b]);
                      return one != other ? one > other : a < b;
                    });
  order.resize(most);
  std::vector<Wave> waves;
  waves.reserve(most);
  for (const size_t k : order) {
    waves.push_back(WaveOf(of.x, k, of.step, periodic ? candidates.confidences[k] : 0));
  }
  return waves;
}

std::string TooFew(size_t there, size_t all) {
  return fmt::format("{} of {} points are there; {} are needed, and half of all", there, all,
                     Periodicity::kFewestPoints);
}

}  // namespace

Result<Periodicity> FindPeriod(std::span<const double> values, double interval,
                               const PeriodOptions& options) {
  if (!(interval > 0) || !std::isfinite(interval)) {
    return Status(Code::kInvalid, "expected an interval above 0");
  }
  if (!(options.tolerance > 0) || !(options.tolerance <= 1)) {
    return Status(Code::kInvalid, "expected a tolerance above 0, 1 at most");
  }
  if (std::any_of(values.begin(), values.end(), [](double x) { return std::isinf(x); })) {
    return Status(Code::kInvalid, "expected values that are finite, or missing");
  }
  Periodicity out;
  out.samples = values.size();
  out.sampling = 1 / interval;
  if (values.size() < 2) {
    out.why_not = TooFew(values.size(), values.size());
    return out;
  }
  Residuals residuals = WithoutLine(values);
  if (residuals.flat) residuals.y.assign(values.size(), 0);
  Transformed of;
  of.x = Dft(residuals.y);
  of.z = ZScores(of.x, options.power);
  of.step = out.sampling / static_cast<double>(values.size());
  const Candidates candidates = CandidatesOf(of.z, options.tolerance);
  if (residuals.count < static_cast<double>(Periodicity::kFewestPoints) ||
      2 * residuals.count < static_cast<double>(values.size())) {
    out.why_not = TooFew(static_cast<size_t>(residuals.count), values.size());
  } else if (residuals.flat) {
    out.why_not = "it is constant, or changes at one rate";
  } else {
    Choose(residuals, of, candidates, out);
  }
  out.strongest = Strongest(of, candidates, options.frequencies, out.period.has_value());
  return out;
}

}  // namespace sonde::insight
