#include "insight/stragglers.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "insight/change_points.h"
#include "insight/robust.h"

namespace sonde::insight {
namespace {

constexpr size_t kShortestWindow = 8;  // ticks of an eighth, a quarter or a half
constexpr int kHalvings = 3;
constexpr size_t kTogether = 16;  // ticks whose values are gathered at once

using Parts = std::vector<std::pair<size_t, size_t>>;

struct TimeWindow {
  const NamedTicks* phase = nullptr;
  Parts parts;
};

// Means over the windows of a step, whose edges cut the time into cells.
class Cells {
 public:
  Cells(size_t ticks, const std::vector<TimeWindow>& windows) : edges_{0, ticks} {
    for (const TimeWindow& window : windows) {
      for (const auto& [begin, end] : window.parts) edges_.insert(edges_.end(), {begin, end});
    }
    std::sort(edges_.begin(), edges_.end());
    edges_.erase(std::unique(edges_.begin(), edges_.end()), edges_.end());
    for (const TimeWindow& window : windows) {
      auto& cells = cells_.emplace_back();
      for (const auto& [begin, end] : window.parts) {
        for (size_t c = At(begin); c < At(end); ++c) cells.push_back(c);
      }
    }
  }
  // Takes the values of one row; the means of each window follow.
  void Take(const Row& row) {
    sums_.assign(edges_.size() - 1, 0);
    counts_.assign(edges_.size() - 1, 0);
    for (size_t c = 0; c + 1 < edges_.size(); ++c) {
      for (size_t t = edges_[c]; t < edges_[c + 1]; ++t) {
        if (std::isnan(row[t])) continue;
        sums_[c] += row[t];
        ++counts_[c];
      }
    }
  }
  double Count(size_t window) const {
    double out = 0;
    for (const size_t c : cells_[window]) out += counts_[c];
    return out;
  }
  double Mean(size_t window) const {
    double out = 0;
    for (const size_t c : cells_[window]) out += sums_[c];
    return out / Count(window);
  }

 private:
  size_t At(size_t tick) const {
    return static_cast<size_t>(std::lower_bound(edges_.begin(), edges_.end(), tick) -
                               edges_.begin());
  }
  std::vector<size_t> edges_;
  std::vector<std::vector<size_t>> cells_;  // of each window
  std::vector<double> sums_, counts_;       // of each cell
};

std::vector<TimeWindow> WindowsOf(size_t ticks, const StragglerOptions& options) {
  std::vector<TimeWindow> out;
  out.push_back({nullptr, {{0, ticks}}});
  for (int halving = 1; halving <= kHalvings; ++halving) {
    const size_t count = size_t{1} << halving;
    if (ticks / count < kShortestWindow) break;
    for (size_t i = 0; i < count; ++i) {
      out.push_back({nullptr, {{ticks * i / count, ticks * (i + 1) / count}}});
    }
  }
  for (const NamedTicks& phase : options.phases) {
    TimeWindow window{&phase, {}};
    for (auto [begin, end] : phase.parts) {
      end = std::min(end, ticks);
      if (begin < end) window.parts.emplace_back(begin, end);
    }
    if (!window.parts.empty()) out.push_back(std::move(window));
  }
  return out;
}

// How the rows are in one window.
struct InWindow {
  std::vector<double> mean;  // D; NaN: not judged
  Centre centre;             // of D
  double level = 0;
  double limit = 0;
  double relevant = 0;

  double Score(double d) const {
    const double away = d - centre.median;
    const double score =
        centre.deviation > 0 ? away / centre.deviation : std::copysign(kMostScore, away);
    return std::clamp(score, -kMostScore, kMostScore);
  }
  // Above 1: it stands out.
  double Standing(size_t row) const {
    if (std::isnan(mean[row])) return 0;
    const double away = std::abs(mean[row] - centre.median);
    if (away < relevant || away == 0 || !(limit < kMostScore)) return 0;
    return std::abs(Score(mean[row])) / limit;
  }
};

Row DeviationsOf(const Row& row, const Row& medians) {
  Row out(row.size());
  for (size_t t = 0; t < out.size(); ++t) out[t] = row[t] - medians[t];
  return out;
}

class Looking {
 public:
  Looking(std::span<const Row> rows, const StragglerOptions& options)
      : options_(options),
        rows_(rows),
        medians_(MediansOf(rows)),
        windows_(WindowsOf(medians_.size(), options)),
        in_(windows_.size()) {
    Cells cells(medians_.size(), windows_);
    cells.Take(medians_);
    std::vector<double> there;
    for (size_t w = 0; w < in_.size(); ++w) {
      there.push_back(cells.Count(w));
      in_[w].level = there[w] > 0 ? cells.Mean(w) : 0;
    }
    for (const Row& row : rows) {
      cells.Take(WithoutSpikes(DeviationsOf(row, medians_)));
      for (size_t w = 0; w < in_.size(); ++w) {
        const double own = cells.Count(w);
        in_[w].mean.push_back(own > 0 && 2 * own >= there[w] ? cells.Mean(w) : kNoNumber);
      }
    }
    const auto others = static_cast<double>(windows_.size() - 1);
    for (size_t w = 0; w < in_.size(); ++w) {
      in_[w].centre = CentreOf(in_[w].mean);
      if (there[w] > 0) {
        const auto parts = static_cast<double>(windows_[w].parts.size());
        const double measured = options.resolution / there[w] * std::sqrt(parts / 6);
        in_[w].centre.deviation = std::fmax(in_[w].centre.deviation, measured);
      }
      const double chance = others == 0 ? options.by_chance : options.by_chance / 2;
      in_[w].limit = OutlierLimit(in_[w].centre.count, w == 0 ? chance : chance / others);
      in_[w].relevant = std::max(options.relevant, options.relevant_share * std::abs(in_[w].level));
    }
  }

  StragglerFindings Find() const {
    StragglerFindings out;
    out.medians = medians_;
    const InWindow& whole = in_.front();
    out.rows = whole.centre.count;
    out.level = whole.level;
    out.spread = whole.centre.deviation;
    out.limit = whole.limit;
    if (out.rows == 2) out.differ = Differ();
    std::vector<std::pair<double, size_t>> standing;
    for (size_t r = 0; r < rows_.size(); ++r) {
      const double most = Standing(r).first;
      if (most > 1) standing.emplace_back(-most, r);
    }
    std::sort(standing.begin(), standing.end());
    if (standing.size() > options_.most) standing.resize(options_.most);
    for (const auto& [most, row] : standing) out.stragglers.push_back(Describe(row));
    return out;
  }

 private:
  // The window in which the row stands out most, and how much.
  std::pair<double, size_t> Standing(size_t row) const {
    std::pair<double, size_t> most{0, 0};
    for (size_t w = 0; w < in_.size(); ++w) most = std::max(most, {in_[w].Standing(row), w});
    return most;
  }
  Beside In(const Parts& parts, size_t row) const {
    Beside out;
    double count = 0;
    for (const auto& [begin, end] : parts) {
      for (size_t t = begin; t < end; ++t) {
        if (std::isnan(rows_[row][t])) continue;
        out.value += rows_[row][t];
        out.others += medians_[t];
        ++count;
      }
    }
    if (count == 0) return out;
    out.value /= count;
    out.others /= count;
    return out;
  }

  // The ticks in which the row is away as it is in the window where it stands out.
  Parts PartsOf(size_t row, const TimeWindow& window, double sign) const {
    const Row d = DeviationsOf(rows_[row], medians_);
    const auto found = FindSegments(std::span(&d, 1));
    if (!found.ok() || found->size() < 2) {
      return window.phase != nullptr ? window.parts : windows_.front().parts;
    }
    double farthest = 0;
    for (const Segment& segment : *found) farthest = std::fmax(farthest, sign * segment.means[0]);
    Parts parts;
    for (const Segment& segment : *found) {
      if (!(sign * segment.means[0] >= farthest / 2)) continue;
      if (!parts.empty() && parts.back().second == segment.begin) {
        parts.back().second = segment.end;
      } else {
        parts.emplace_back(segment.begin, segment.end);
      }
    }
    return parts.empty() ? windows_.front().parts : parts;
  }
  Straggler Describe(size_t row) const {
    const size_t where = Standing(row).second;
    const double score = in_[where].Score(in_[where].mean[row]);
    Straggler out;
    out.row = row;
    out.parts = PartsOf(row, windows_[where], score);
    out.begin = out.parts.front().first;
    out.end = out.parts.back().second;
    out.overall = In(out.parts, row);
    out.overall.score = score;
    for (size_t w = 0; w < in_.size(); ++w) {
      if (windows_[w].phase == nullptr || !(in_[w].Standing(row) > 1)) continue;
      Beside beside = In(windows_[w].parts, row);
      beside.score = in_[w].Score(in_[w].mean[row]);
      out.phases.emplace_back(windows_[w].phase->name, beside);
    }
    std::stable_sort(out.phases.begin(), out.phases.end(), [](const auto& a, const auto& b) {
      return std::abs(a.second.score) > std::abs(b.second.score);
    });
    return out;
  }

  // Of two rows: the mean of their difference against its own noise over time.
  bool Differ() const {
    std::vector<double> differences;
    const Row* one = nullptr;
    for (size_t r = 0; r < rows_.size(); ++r) {
      if (std::isnan(in_.front().mean[r])) continue;
      if (one == nullptr) {
        one = &rows_[r];
        continue;
      }
      for (size_t t = 0; t < one->size(); ++t) {
        const double difference = (*one)[t] - rows_[r][t];
        if (!std::isnan(difference)) differences.push_back(difference);
      }
    }
    const auto n = static_cast<double>(differences.size());
    if (n < static_cast<double>(kShortestWindow)) return false;
    double mean = 0, squares = 0, products = 0;
    for (const double x : differences) mean += x / n;
    for (size_t i = 0; i < differences.size(); ++i) {
      squares += (differences[i] - mean) * (differences[i] - mean);
      if (i > 0) products += (differences[i] - mean) * (differences[i - 1] - mean);
    }
    const double r = squares > 0 ? std::clamp(products / squares + 1 / n, 0.0, 0.99) : 0;
    const double error = std::sqrt(squares / (n - 1) * (1 + r) / (1 - r) / n);
    // Four errors: of 8 values, whose spread is not well known either, 0.5 % by chance.
    return std::abs(mean) > 4 * error && std::abs(mean) >= in_.front().relevant;
  }

  const StragglerOptions& options_;
  std::span<const Row> rows_;
  Row medians_;
  std::vector<TimeWindow> windows_;
  std::vector<InWindow> in_;
};

}  // namespace

double Beside::Share() const {
  if (others == 0) {
    return value == 0 ? 0 : std::copysign(std::numeric_limits<double>::infinity(), value);
  }
  return (value - others) / std::abs(others);
}

Row MediansOf(std::span<const Row> rows) {
  Row out;
  if (rows.empty()) return out;
  const size_t ticks = rows.front().size();
  out.resize(ticks, kNoNumber);
  // Several ticks at once: each row's values lie beside each other.
  std::vector<double> gathered[kTogether];
  for (size_t begin = 0; begin < ticks; begin += kTogether) {
    const size_t count = std::min(kTogether, ticks - begin);
    for (auto& one : gathered) one.clear();
    for (const Row& row : rows) {
      for (size_t i = 0; i < count; ++i) {
        if (!std::isnan(row[begin + i])) gathered[i].push_back(row[begin + i]);
      }
    }
    for (size_t i = 0; i < count; ++i) out[begin + i] = MedianIn(gathered[i]);
  }
  return out;
}

Result<StragglerFindings> FindStragglers(std::span<const Row> rows,
                                         const StragglerOptions& options) {
  for (const Row& row : rows) {
    if (row.size() != rows.front().size()) {
      return Status(Code::kInvalid, "expected rows of the same length");
    }
    if (std::any_of(row.begin(), row.end(), [](double x) { return std::isinf(x); })) {
      return Status(Code::kInvalid, "expected values that are finite, or missing");
    }
  }
  if (rows.empty() || rows.front().empty()) return StragglerFindings();
  return Looking(rows, options).Find();
}

}  // namespace sonde::insight
