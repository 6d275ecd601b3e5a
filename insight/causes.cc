#include "insight/causes.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace sonde::insight {
namespace {

constexpr double kFewestIndependent = 5;  // ticks

// Ranks from 1 on.
std::vector<double> RanksOf(std::span<const double> values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (size_t begin = 0; begin < order.size();) {
    size_t end = begin + 1;
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    for (size_t i = begin; i < end; ++i) {
      ranks[order[i]] = static_cast<double>(begin + end + 1) / 2;
    }
    begin = end;
  }
  return ranks;
}

// Pearson's correlation of a and b, moved by `lag`.
double Correlation(std::span<const double> a, std::span<const double> b, size_t lag) {
  const size_t count = a.size() - lag;
  const auto n = static_cast<double>(count);
  double mean_a = 0, mean_b = 0;
  for (size_t i = 0; i < count; ++i) {
    mean_a += a[i] / n;
    mean_b += b[i + lag] / n;
  }
  double aa = 0, bb = 0, ab = 0;
  for (size_t i = 0; i < count; ++i) {
    const double da = a[i] - mean_a, db = b[i + lag] - mean_b;
    aa += da * da;
    bb += db * db;
    ab += da * db;
  }
  return aa > 0 && bb > 0 ? ab / std::sqrt(aa * bb) : kNoNumber;
}

struct RankedPair {
  std::vector<double> a, b;
};
RankedPair RankedBoth(std::span<const double> a, std::span<const double> b) {
  std::vector<double> there_a, there_b;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (std::isnan(a[i]) || std::isnan(b[i])) continue;
    there_a.push_back(a[i]);
    there_b.push_back(b[i]);
  }
  return {RanksOf(there_a), RanksOf(there_b)};
}

// Whether a correlation is beyond chance, by Fisher's z over the independent ticks.
bool IsBeyondChance(const RankedPair& pair, double correlation, double by_chance) {
  const double a = Correlation(pair.a, pair.a, 1), b = Correlation(pair.b, pair.b, 1);
  const double both = std::isnan(a * b) ? 0 : std::clamp(a * b, 0.0, 0.999);
  const double n = static_cast<double>(pair.a.size()) * (1 - both) / (1 + both);
  if (n < kFewestIndependent) return false;
  const double z = std::atanh(std::clamp(std::abs(correlation), 0.0, 1 - 1e-12)) * std::sqrt(n - 3);
  return std::erfc(z / std::sqrt(2.0)) < by_chance;
}

// Whether each tick is one of the straggler's.
std::vector<bool> InsideOf(const Straggler& straggler, size_t ticks) {
  std::vector<bool> inside(ticks);
  for (const auto& [begin, end] : straggler.parts) {
    for (size_t t = begin; t < std::min(end, ticks); ++t) inside[t] = true;
  }
  return inside;
}

// The row and the medians in the ticks that are, or are not, inside.
struct MeansIn {
  double value = 0, others = 0;
  size_t count = 0;
};
MeansIn MeansWhere(std::span<const double> row, std::span<const double> medians,
                   const std::vector<bool>& inside, bool which) {
  MeansIn out;
  for (size_t t = 0; t < row.size(); ++t) {
    if (inside[t] != which || std::isnan(row[t]) || std::isnan(medians[t])) continue;
    out.value += row[t];
    out.others += medians[t];
    ++out.count;
  }
  if (out.count > 0) {
    out.value /= static_cast<double>(out.count);
    out.others /= static_cast<double>(out.count);
  }
  return out;
}

Row AwayFrom(std::span<const double> row, std::span<const double> medians) {
  Row out(row.size());
  for (size_t t = 0; t < row.size(); ++t) out[t] = row[t] - medians[t];
  return out;
}

class Judging {
 public:
  Judging(const Straggler& straggler, std::span<const double> row, std::span<const double> medians,
          const CauseOptions& options, size_t suspects)
      : inside_(InsideOf(straggler, row.size())),
        away_(AwayFrom(row, medians)),
        by_chance_(options.by_chance / static_cast<double>(std::max<size_t>(1, suspects))),
        relevant_share_(options.relevant_share),
        sign_(straggler.overall.value < straggler.overall.others ? -1 : 1) {}

  // False: there is no evidence.
  bool Judge(const Suspect& suspect, Cause& cause) const {
    const Row& own = suspect.rows[suspect.own];
    const MeansIn in = MeansWhere(own, suspect.medians, inside_, true);
    if (in.count == 0) return false;
    cause.inside.value = in.value;
    cause.inside.others = in.others;
    const double away = suspect.direction * (in.value - in.others);
    if (!(away > 0) || away < suspect.least) return false;
    if (away < relevant_share_ * std::abs(in.others)) return false;
    const MeansIn out = MeansWhere(own, suspect.medians, inside_, false);
    if (out.count >= kFewestOutside) {
      cause.outside_value = out.value;
      cause.outside_others = out.others;
      if (suspect.direction * (out.value - out.others) > away / 2) return false;
    }
    cause.beyond_limit = IsFar(suspect, cause.inside.score);
    Follow(AwayFrom(own, suspect.medians), suspect.direction, cause);
    return cause.beyond_limit || cause.follows;
  }

 private:
  bool IsFar(const Suspect& suspect, double& score) const {
    std::vector<double> means;
    for (const Row& row : suspect.rows) {
      const MeansIn in = MeansWhere(row, suspect.medians, inside_, true);
      means.push_back(in.count > 0 ? in.value - in.others : kNoNumber);
    }
    const Centre centre = CentreOf(means);
    const double away = means[suspect.own] - centre.median;
    score = centre.deviation > 0 ? std::clamp(away / centre.deviation, -kMostScore, kMostScore)
                                 : std::copysign(kMostScore, away);
    return std::abs(score) > OutlierLimit(centre.count, by_chance_);
  }
  void Follow(const Row& away, int direction, Cause& cause) const {
    const RankedPair pair = RankedBoth(away_, away);
    if (pair.a.size() < 3) return;
    cause.correlation = Correlation(pair.a, pair.b, 0);
    // More of the cause goes with more of the straggler's own deviation, whichever sign it has.
    cause.follows = cause.correlation * sign_ * direction >= kFollows &&
                    IsBeyondChance(pair, cause.correlation, by_chance_);
  }

  std::vector<bool> inside_;
  Row away_;  // of the straggler, in its own metric
  double by_chance_;
  double relevant_share_;
  int sign_;
};

}  // namespace

double RankCorrelation(std::span<const double> a, std::span<const double> b) {
  const RankedPair pair = RankedBoth(a, b);
  return pair.a.size() < 3 ? kNoNumber : Correlation(pair.a, pair.b, 0);
}

std::vector<Cause> FindCauses(const Straggler& straggler, std::span<const double> row,
                              std::span<const double> medians, std::span<const Suspect> suspects,
                              const CauseOptions& options) {
  std::vector<Cause> out;
  const size_t ticks = row.size();
  if (medians.size() != ticks) return out;
  const Judging judging(straggler, row, medians, options, suspects.size());
  for (size_t i = 0; i < suspects.size(); ++i) {
    const Suspect& suspect = suspects[i];
    const bool fits = suspect.own < suspect.rows.size() && suspect.medians.size() == ticks &&
                      std::all_of(suspect.rows.begin(), suspect.rows.end(),
                                  [&](const Row& one) { return one.size() == ticks; });
    Cause cause;
    cause.suspect = i;
    if (fits && judging.Judge(suspect, cause)) out.push_back(cause);
  }
  std::stable_sort(out.begin(), out.end(), [](const Cause& a, const Cause& b) {
    const bool with_a = a.follows || !std::isnan(a.outside_value);
    const bool with_b = b.follows || !std::isnan(b.outside_value);
    if (with_a != with_b) return with_a;
    return std::abs(a.inside.score) > std::abs(b.inside.score);
  });
  return out;
}

}  // namespace sonde::insight
