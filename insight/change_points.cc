#include "insight/change_points.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "insight/pelt.h"
#include "insight/periods.h"
#include "insight/robust.h"

namespace sonde::insight {
namespace {

constexpr int kMostSearches = 10;
constexpr double kAgrees = 1.05;       // v, from one search to the next
constexpr size_t kFewestSamples = 10;  // in which a change is looked for
constexpr double kRounding = 1e-12;    // of the values' size, squared: below it all is equal
constexpr size_t kFewestForPeriod = 48;
constexpr size_t kCutsOfCycles = 2 * 4;  // fewer make no five cycles
constexpr size_t kFarthest = 2;          // values that no change may rest on

double PenaltyOf(size_t series, size_t places, double by_chance) {
  const auto d = static_cast<double>(series);
  const double x = std::log(static_cast<double>(places) / by_chance);
  return d + 2 * std::sqrt(d * x) + 2 * x;
}

// --- Preparing a series ---

double MeanThere(std::span<const double> values) {
  double sum = 0, count = 0;
  for (const double value : values) {
    if (std::isnan(value)) continue;
    sum += value;
    ++count;
  }
  return count > 0 ? sum / count : 0;
}

// Without its mean, so that sums of squares stay exact.
Binned BinnedOf(const std::vector<double>& values, size_t each) {
  const double mean = MeanThere(values);
  Binned out;
  for (size_t begin = 0; begin < values.size(); begin += each) {
    double sum = 0, weight = 0;
    for (size_t i = begin; i < std::min(begin + each, values.size()); ++i) {
      if (std::isnan(values[i])) continue;
      sum += values[i] - mean;
      ++weight;
    }
    out.y.push_back(weight > 0 ? sum / weight : 0);
    out.weight.push_back(weight);
  }
  out.Sum();
  return out;
}

std::vector<double> ThereOf(const Binned& one) {
  std::vector<double> out = one.y;
  for (size_t i = 0; i < out.size(); ++i) {
    if (one.weight[i] == 0) out[i] = kNoNumber;
  }
  return out;
}

// The median of the slopes over tenths of the series, per bin.
double SlopeOf(const Binned& one) {
  const size_t apart = std::max<size_t>(1, one.y.size() / 10);
  std::vector<double> slopes;
  for (size_t i = 0; i + apart < one.y.size(); ++i) {
    if (one.weight[i] == 0 || one.weight[i + apart] == 0) continue;
    slopes.push_back((one.y[i + apart] - one.y[i]) / static_cast<double>(apart));
  }
  return slopes.empty() ? 0 : MedianIn(slopes);
}

Binned WithoutLine(const Binned& one, double slope) {
  Binned out = one;
  const double middle = static_cast<double>(one.y.size()) / 2;
  for (size_t i = 0; i < out.y.size(); ++i) {
    if (out.weight[i] > 0) out.y[i] -= slope * (static_cast<double>(i) - middle);
  }
  out.Sum();
  return out;
}

// Takes the mean cycle off the series: that of `rest`, which has no changes of level.
bool TakeCycleOff(const Binned& rest, Binned& one) {
  if (rest.y.size() < kFewestForPeriod) return false;
  const auto found = FindPeriod(ThereOf(rest), 1);
  if (!found.ok() || !found->period) return false;
  const double period = *found->period;
  const auto slots = static_cast<size_t>(std::ceil(period));
  std::vector<double> sum(slots), count(slots);
  const auto slot = [&](size_t i) {
    const double in = std::fmod(static_cast<double>(i), period) / period;
    return std::min(slots - 1, static_cast<size_t>(in * static_cast<double>(slots)));
  };
  for (size_t i = 0; i < rest.y.size(); ++i) {
    sum[slot(i)] += rest.weight[i] * rest.y[i];
    count[slot(i)] += rest.weight[i];
  }
  for (size_t i = 0; i < one.y.size(); ++i) {
    if (one.weight[i] > 0 && count[slot(i)] > 0) one.y[i] -= sum[slot(i)] / count[slot(i)];
  }
  one.Sum();
  return true;
}

// --- The search ---

// Searches until the noise that is left is the noise that was expected.
BestCuts SearchAgreeing(Joined& all, double penalty, size_t shortest) {
  BestCuts found;
  for (int i = 0; i < kMostSearches; ++i) {
    found = Pelt(all, penalty, shortest);
    bool agrees = true;
    for (Binned& one : all) {
      const double left = LongRunVariance(one, found.cuts);
      if (left <= one.variance * kAgrees) continue;
      one.variance = left;
      agrees = false;
    }
    if (agrees) break;
  }
  return found;
}

void BeginWithNeighbours(Binned& one) {
  const std::vector<double> there = ThereOf(one);
  double size = 0, weights = 0;
  for (size_t i = 0; i < one.y.size(); ++i) {
    size += one.weight[i] * one.y[i] * one.y[i];
    weights += one.weight[i];
  }
  const double each = weights / static_cast<double>(std::max<size_t>(1, one.y.size()));
  const double noise = NeighbourNoise(there);
  const double least = weights > 0 ? kRounding * size / weights : 0;
  one.variance = std::max({noise * noise * each, least, std::numeric_limits<double>::min()});
}

// Only the levels of the segments.
Binned LevelsOf(const Binned& one, const Cuts& cuts) {
  const Binned rest = RestOf(one, cuts);
  Binned out = one;
  for (size_t i = 0; i < out.y.size(); ++i) out.y[i] -= rest.y[i];
  out.Sum();
  return out;
}

BestCuts Search(Joined& all, double penalty, size_t shortest) {
  for (Binned& one : all) BeginWithNeighbours(one);
  BestCuts found = SearchAgreeing(all, penalty, shortest);
  if (found.cuts.size() <= 2) return found;
  bool cycles = false;
  for (Binned& one : all) {
    // Of a weak one the levels show it, if they are enough, or what they leave.
    const bool by_levels =
        found.cuts.size() > kCutsOfCycles && TakeCycleOff(LevelsOf(one, found.cuts), one);
    cycles |= by_levels || TakeCycleOff(RestOf(one, found.cuts), one);
  }
  if (!cycles) return found;
  for (Binned& one : all) BeginWithNeighbours(one);
  return SearchAgreeing(all, penalty, shortest);
}

// The slope within the segments, by least squares.
double SlopeWithin(const Binned& one, const Cuts& cuts) {
  double tt = 0, ty = 0;
  for (size_t s = 0; s + 1 < cuts.size(); ++s) {
    double w = 0, t = 0;
    for (size_t i = cuts[s]; i < cuts[s + 1]; ++i) {
      w += one.weight[i];
      t += one.weight[i] * static_cast<double>(i);
    }
    if (!(w > 0)) continue;
    for (size_t i = cuts[s]; i < cuts[s + 1]; ++i) {
      const double dt = static_cast<double>(i) - t / w;
      tt += one.weight[i] * dt * dt;
      ty += one.weight[i] * dt * one.y[i];
    }
  }
  return tt > 0 ? ty / tt : 0;
}

// The same search after a straight line is taken off each series, which then lacks it.
BestCuts SearchWithoutLine(Joined& all, double penalty, size_t shortest) {
  for (Binned& one : all) one = WithoutLine(one, SlopeOf(one));
  BestCuts found = Search(all, penalty, shortest);
  if (found.cuts.size() <= 2) return found;
  // Changes of level lean on the first line; what is between them does not.
  for (Binned& one : all) one = WithoutLine(one, SlopeWithin(one, found.cuts));
  return Search(all, penalty, shortest);
}

// The sum that was to be least, for these variances.
double SumOf(const Joined& all, const Joined& variances, const Cuts& cuts, double penalty) {
  double sum = penalty * static_cast<double>(cuts.size() - 2);
  for (size_t i = 0; i < all.size(); ++i) {
    const Binned rest = RestOf(all[i], cuts);
    for (size_t k = 0; k < rest.y.size(); ++k) {
      sum += rest.weight[k] * rest.y[k] * rest.y[k] / variances[i].variance;
    }
  }
  return sum;
}

// --- What stays ---

// What is left around the mean, and around a straight line.
struct Fits {
  double level = 0;
  double line = 0;
};
Fits FitsOf(const Binned& one, size_t begin, size_t end) {
  double w = 0, t = 0, y = 0;
  for (size_t i = begin; i < end; ++i) {
    w += one.weight[i];
    t += one.weight[i] * static_cast<double>(i);
    y += one.weight[i] * one.y[i];
  }
  Fits out;
  if (!(w > 0)) return out;
  t /= w;
  y /= w;
  double tt = 0, ty = 0, yy = 0;
  for (size_t i = begin; i < end; ++i) {
    const double dt = static_cast<double>(i) - t, dy = one.y[i] - y;
    tt += one.weight[i] * dt * dt;
    ty += one.weight[i] * dt * dy;
    yy += one.weight[i] * dy * dy;
  }
  out.level = yy / one.variance;
  out.line = (yy - (tt > 0 ? ty * ty / tt : 0)) / one.variance;
  return out;
}

bool IsStep(const Joined& all, size_t begin, size_t middle, size_t end) {
  double levels = 0, line = 0;
  for (const Binned& one : all) {
    levels += FitsOf(one, begin, middle).level + FitsOf(one, middle, end).level;
    line += FitsOf(one, begin, end).line;
  }
  return levels < line;
}

// What the cut gains if of each series its values farthest from all of both segments are not there.
double GainWithoutFarthest(const Joined& all, size_t begin, size_t middle, size_t end) {
  double gain = 0;
  for (const Binned& one : all) {
    const double centre = MedianOf(std::span(one.y).subspan(begin, end - begin));
    std::vector<size_t> order(end - begin);
    std::iota(order.begin(), order.end(), begin);
    const size_t most = std::min(kFarthest, order.size());
    std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(most), order.end(),
                      [&](size_t a, size_t b) {
                        const double one_away =
                            one.weight[a] > 0 ? std::abs(one.y[a] - centre) : -1;
                        const double other = one.weight[b] > 0 ? std::abs(one.y[b] - centre) : -1;
                        return one_away != other ? one_away > other : a < b;
                      });
    double w[2] = {}, y[2] = {};
    for (size_t i = begin; i < end; ++i) {
      if (std::find(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(most), i) !=
          order.begin() + static_cast<std::ptrdiff_t>(most)) {
        continue;
      }
      w[i >= middle] += one.weight[i];
      y[i >= middle] += one.weight[i] * one.y[i];
    }
    if (!(w[0] > 0) || !(w[1] > 0)) continue;
    const double difference = y[1] / w[1] - y[0] / w[0];
    gain += w[0] * w[1] / (w[0] + w[1]) * difference * difference / one.variance;
  }
  return gain;
}

double GainOf(const Joined& all, size_t begin, size_t middle, size_t end) {
  return ExplainedOf(all, begin, middle) + ExplainedOf(all, middle, end) -
         ExplainedOf(all, begin, end);
}

// Removes what is no step, the weakest first, since its segments then become one.
void KeepSteps(const Joined& all, double penalty, Cuts& cuts) {
  while (cuts.size() > 2) {
    size_t weakest = 0;
    double least = std::numeric_limits<double>::infinity();
    for (size_t c = 1; c + 1 < cuts.size(); ++c) {
      const bool stays = IsStep(all, cuts[c - 1], cuts[c], cuts[c + 1]) &&
                         GainWithoutFarthest(all, cuts[c - 1], cuts[c], cuts[c + 1]) > penalty / 2;
      const double gain = GainOf(all, cuts[c - 1], cuts[c], cuts[c + 1]);
      if (stays || gain >= least) continue;
      weakest = c;
      least = gain;
    }
    if (weakest == 0) return;
    cuts.erase(cuts.begin() + static_cast<std::ptrdiff_t>(weakest));
  }
}

// Single values of a series, with the line and the cycle taken off that were taken off its bins.
class Samples {
 public:
  // `raw`: the bins before that.
  Samples(const std::vector<double>& values, size_t each, const Binned& raw, const Binned& bins)
      : values_(values), each_(each), raw_(raw), bins_(bins), mean_(MeanThere(values)) {}

  // NaN: missing.
  double At(size_t i) const {
    const double at = (static_cast<double>(i) + 0.5) / static_cast<double>(each_) - 0.5;
    const size_t bin = std::min(static_cast<size_t>(std::max(0.0, at)), bins_.y.size() - 1);
    const size_t next = std::min(bin + 1, bins_.y.size() - 1);
    const double off = Off(bin) + (at - static_cast<double>(bin)) * (Off(next) - Off(bin));
    return values_[i] - mean_ - off;
  }
  const Binned& bins() const { return bins_; }

 private:
  double Off(size_t bin) const { return raw_.y[bin] - bins_.y[bin]; }

  const std::vector<double>& values_;
  size_t each_;
  const Binned& raw_;
  const Binned& bins_;
  double mean_;
};

// The sample from `low` to `high`, bins between `begin` and `end`, at which a cut explains most.
size_t BestSample(const std::vector<Samples>& all, size_t each, size_t begin, size_t low,
                  size_t high, size_t end) {
  const size_t first = low * each, last = high * each;
  std::vector<double> explained(last - first + 1);
  for (const Samples& samples : all) {
    const Binned& bins = samples.bins();
    const double all_w = bins.sum_w[end] - bins.sum_w[begin];
    const double all_y = bins.sum_y[end] - bins.sum_y[begin];
    double w = bins.sum_w[low] - bins.sum_w[begin], y = bins.sum_y[low] - bins.sum_y[begin];
    for (size_t i = first; i <= last; ++i) {
      const double rest_w = all_w - w, rest_y = all_y - y;
      if (w > 0 && rest_w > 0) {
        explained[i - first] += (y * y / w + rest_y * rest_y / rest_w) / bins.variance;
      }
      const double value = i < last ? samples.At(i) : kNoNumber;
      if (std::isnan(value)) continue;
      y += value;
      ++w;
    }
  }
  return first + static_cast<size_t>(std::max_element(explained.begin(), explained.end()) -
                                     explained.begin());
}

// Puts each cut, known to some bins, to the sample where the sum is least.
Cuts Refined(const std::vector<Samples>& all, size_t each, size_t shortest, size_t samples,
             const Cuts& cuts) {
  Cuts out = {0};
  for (size_t c = 1; c + 1 < cuts.size(); ++c) {
    const size_t low = std::max(cuts[c] - 2, cuts[c - 1] + 1);
    const size_t high = std::min(cuts[c] + 2, cuts[c + 1] - 1);
    const size_t best = BestSample(all, each, cuts[c - 1], low, high, cuts[c + 1]);
    out.push_back(std::max(best, out.back() + shortest));
  }
  out.push_back(samples);
  return out;
}

// --- The whole ---

Status CheckSeries(std::span<const std::vector<double>> series, const ChangeOptions& options) {
  if (options.shortest < 1) return {Code::kInvalid, "expected segments of one sample or more"};
  if (!(options.by_chance > 0) || !(options.by_chance < 1)) {
    return {Code::kInvalid, "expected a chance between 0 and 1"};
  }
  if (series.size() > kMostJoined) {
    return {Code::kInvalid, "expected at most 64 series that are looked at together"};
  }
  for (const std::vector<double>& one : series) {
    if (one.size() != series.front().size()) {
      return {Code::kInvalid, "expected series of the same length"};
    }
    if (std::any_of(one.begin(), one.end(), [](double x) { return std::isinf(x); })) {
      return {Code::kInvalid, "expected values that are finite, or missing"};
    }
  }
  return {};
}

// The first sample from `at` on that a series has: a level begins with a value.
size_t NextThere(const std::vector<std::vector<double>>& series, size_t at) {
  const auto there = [&](size_t i) {
    return std::any_of(series.begin(), series.end(),
                       [&](const std::vector<double>& one) { return !std::isnan(one[i]); });
  };
  while (at + 1 < series.front().size() && !there(at)) ++at;
  return at;
}

bool IsConstant(std::span<const double> values) {
  double first = kNoNumber;
  for (const double value : values) {
    if (std::isnan(first)) first = value;
    if (value != first && !std::isnan(value)) return false;
  }
  return true;
}

}  // namespace

Result<std::vector<size_t>> FindChanges(std::span<const std::vector<double>> series,
                                        const ChangeOptions& options) {
  SONDE_RETURN_IF_ERROR(CheckSeries(series, options));
  std::vector<std::vector<double>> clean;
  for (const std::vector<double>& one : series) {
    if (!IsConstant(one)) clean.push_back(WithoutSpikes(one));
  }
  if (clean.empty() || clean.front().size() < std::max(kFewestSamples, 2 * options.shortest)) {
    return std::vector<size_t>();
  }
  const size_t samples = clean.front().size();
  const size_t each = (samples + kBins - 1) / kBins;
  const size_t shortest =
      each == 1 ? options.shortest : std::max<size_t>(3, (options.shortest + each - 1) / each);
  Joined all;
  for (const std::vector<double>& one : clean) all.push_back(BinnedOf(one, each));
  const Joined raw = all;
  // In a cycle that is much stronger than the noise cuts would follow it.
  for (Binned& one : all) TakeCycleOff(one, one);
  Joined without_line = all;
  const double penalty = PenaltyOf(clean.size(), all.front().y.size(), options.by_chance);
  BestCuts found = Search(all, penalty, shortest);
  if (found.cuts.size() > 2) {
    const BestCuts other = SearchWithoutLine(without_line, penalty, shortest);
    // Both by the same noise: the lesser, which the better of them leaves.
    Joined variances = all;
    for (size_t i = 0; i < all.size(); ++i) {
      variances[i].variance = std::min(all[i].variance, without_line[i].variance);
    }
    // The line costs half of what a change does, for it has no place.
    if (SumOf(without_line, variances, other.cuts, penalty) + penalty / 2 <
        SumOf(all, variances, found.cuts, penalty)) {
      found = other;
      all = std::move(without_line);
    }
  }
  KeepSteps(all, penalty, found.cuts);
  if (each > 1 && found.cuts.size() > 2) {
    std::vector<Samples> fine;
    for (size_t i = 0; i < clean.size(); ++i) fine.emplace_back(clean[i], each, raw[i], all[i]);
    found.cuts = Refined(fine, each, options.shortest, samples, found.cuts);
  }
  std::vector<size_t> changes(found.cuts.begin() + 1, found.cuts.end() - 1);
  for (size_t& change : changes) change = NextThere(clean, change);
  return changes;
}

Result<std::vector<Segment>> FindSegments(std::span<const std::vector<double>> series,
                                          const ChangeOptions& options) {
  auto changes = FindChanges(series, options);
  if (!changes.ok()) return changes.status();
  std::vector<Segment> out;
  if (series.empty() || series.front().empty()) return out;
  changes->push_back(series.front().size());
  size_t begin = 0;
  for (const size_t end : *changes) {
    Segment segment{begin, end, {}};
    for (const std::vector<double>& one : series) {
      const auto part = std::span(one).subspan(begin, end - begin);
      const bool any =
          std::any_of(part.begin(), part.end(), [](double x) { return !std::isnan(x); });
      segment.means.push_back(any ? MeanThere(part) : kNoNumber);
    }
    out.push_back(std::move(segment));
    begin = end;
  }
  return out;
}

}  // namespace sonde::insight
