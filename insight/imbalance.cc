#include "insight/imbalance.h"

#include <algorithm>
#include <cmath>

namespace sonde::insight {
namespace {

// A mean that grows value by value, and the largest of them.
struct Load {
  double sum = 0;
  double max = -std::numeric_limits<double>::infinity();
  size_t count = 0;
  size_t most = 0;

  void Add(double value, size_t which) {
    if (std::isnan(value)) return;
    sum += value;
    ++count;
    if (value <= max) return;
    max = value;
    most = which;
  }
  Imbalance Result() const {
    Imbalance out;
    out.count = count;
    if (count == 0) return out;
    out.most = most;
    out.mean = sum / static_cast<double>(count);
    out.max = max;
    if (count < 2 || !(out.mean > 0)) return out;
    out.factor = std::max(0.0, max / out.mean - 1);
    out.lost = std::max(0.0, (max - out.mean) / max);
    out.percentage = out.lost * static_cast<double>(count) / static_cast<double>(count - 1);
    return out;
  }
};

}  // namespace

Imbalance ImbalanceOf(std::span<const double> values) {
  Load load;
  for (size_t i = 0; i < values.size(); ++i) load.Add(values[i], i);
  return load.Result();
}

ImbalanceOverTime ImbalanceOverTicks(std::span<const std::vector<double>> rows) {
  ImbalanceOverTime out;
  if (rows.empty()) return out;
  std::vector<Load> ticks(rows.front().size());
  std::vector<double> means;
  for (size_t r = 0; r < rows.size(); ++r) {
    Load own;
    for (size_t t = 0; t < std::min(ticks.size(), rows[r].size()); ++t) {
      own.Add(rows[r][t], t);
      ticks[t].Add(rows[r][t], r);
    }
    means.push_back(own.Result().mean);
  }
  out.overall = ImbalanceOf(means);
  double waited = 0, all = 0;
  for (const Load& load : ticks) {
    const Imbalance one = load.Result();
    out.factors.push_back(one.factor);
    out.losses.push_back(one.lost);
    if (std::isnan(one.lost)) continue;
    waited += one.max - one.mean;
    all += one.max;
  }
  if (all > 0) out.lost_by_tick = waited / all;
  return out;
}

}  // namespace sonde::insight
