#include "insight/pelt.h"

#include <algorithm>
#include <limits>

namespace sonde::insight {
namespace {

constexpr double kMostMemory = 0.995;  // r; beyond it there is no long-run variance

void SharesOf(const Binned& one, const std::vector<size_t>& starts, size_t end,
              std::vector<double>& shares) {
  shares.resize(starts.size());
  for (size_t i = 0; i < starts.size(); ++i) {
    const double weight = one.sum_w[end] - one.sum_w[starts[i]];
    shares[i] = weight > 0 ? 1 / weight : 0;
  }
}

}  // namespace

double ExplainedOf(const Joined& all, size_t begin, size_t end) {
  double out = 0;
  for (const Binned& one : all) out += one.Explained(begin, end);
  return out;
}

BestCuts Pelt(const Joined& all, double penalty, size_t shortest) {
  const size_t n = all.front().y.size();
  std::vector<double> best(n + 1, std::numeric_limits<double>::infinity());
  std::vector<size_t> from(n + 1);
  best[0] = -penalty;
  std::vector<bool> same(all.size());
  for (size_t k = 1; k < all.size(); ++k) same[k] = all[k].weight == all[k - 1].weight;
  std::vector<size_t> starts, ends;  // from where to where each may be a cut
  std::vector<double> sums, shares;  // shares: 1 / weight
  for (size_t end = shortest; end <= n; ++end) {
    if (end - shortest == 0 || end - shortest >= shortest) {
      starts.push_back(end - shortest);
      ends.push_back(n + 1);
    }
    sums.resize(starts.size());
    for (size_t i = 0; i < starts.size(); ++i) sums[i] = best[starts[i]];
    for (size_t k = 0; k < all.size(); ++k) {
      const Binned& one = all[k];
      // Divisions are dear, and series mostly have values at the same times.
      if (!same[k]) SharesOf(one, starts, end, shares);
      const double y = one.sum_y[end], scale = 1 / one.variance;
      for (size_t i = 0; i < starts.size(); ++i) {
        const double sum = y - one.sum_y[starts[i]];
        sums[i] -= sum * sum * shares[i] * scale;
      }
    }
    for (size_t i = 0; i < starts.size(); ++i) {
      if (sums[i] + penalty < best[end]) {
        best[end] = sums[i] + penalty;
        from[end] = starts[i];
      }
    }
    // What is worse than a cut here cannot be the last cut of a longer series, as soon as that
    // cut can be one.
    size_t kept = 0;
    for (size_t i = 0; i < starts.size(); ++i) {
      if (sums[i] > best[end]) ends[i] = std::min(ends[i], end + shortest);
      if (ends[i] <= end) continue;
      starts[kept] = starts[i];
      ends[kept++] = ends[i];
    }
    starts.resize(kept);
    ends.resize(kept);
  }
  BestCuts out;
  out.sum = best[n];
  for (size_t at = n; at > 0; at = from[at]) out.cuts.push_back(at);
  out.cuts.push_back(0);
  std::reverse(out.cuts.begin(), out.cuts.end());
  return out;
}

Binned RestOf(const Binned& one, const Cuts& cuts) {
  Binned out = one;
  for (size_t s = 0; s + 1 < cuts.size(); ++s) {
    const double mean = one.Mean(cuts[s], cuts[s + 1]);
    for (size_t i = cuts[s]; i < cuts[s + 1]; ++i) {
      if (out.weight[i] > 0) out.y[i] -= mean;
    }
  }
  out.Sum();
  return out;
}

double LongRunVariance(const Binned& one, const Cuts& cuts) {
  const Binned rest = RestOf(one, cuts);
  double squares = 0, products = 0, count = 0, pairs = 0, weights = 0;
  for (size_t i = 0; i < rest.y.size(); ++i) {
    if (rest.weight[i] == 0) continue;
    squares += rest.weight[i] * rest.y[i] * rest.y[i];
    weights += rest.weight[i];
    ++count;
    if (i == 0 || rest.weight[i - 1] == 0) continue;
    if (std::binary_search(cuts.begin(), cuts.end(), i)) continue;
    products += rest.y[i] * rest.y[i - 1];
    ++pairs;
  }
  const auto segments = static_cast<double>(cuts.size() - 1);
  if (count <= segments || !(squares > 0)) return 0;
  const double variance = squares / count * count / (count - segments);
  double r = 0;
  if (pairs > 0) r = (products / pairs) / (squares / weights);
  r += (1 + 3 * r) * segments / count;
  r = std::clamp(r, 0.0, kMostMemory);
  return variance * (1 + r) / (1 - r);
}

}  // namespace sonde::insight
