#include "insight/steps/tick_grid.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sonde::insight {
namespace {

constexpr double kKnown = 0.5;  // of a tick, for its rate to count

}  // namespace

size_t TickGrid::At(Nanos time) const {
  if (time <= first || count == 0) return 0;
  return std::min(static_cast<size_t>((time - first - 1) / width), count - 1);
}

TickGrid GridOf(const JobDescription& job, size_t most) {
  TickGrid grid;
  const Nanos period = std::max(job.period, kMinPeriod);
  // All daemons sample at multiples of the period.
  grid.first = job.start / period * period;
  const Nanos length = std::max(job.end - grid.first, period);
  const auto periods = static_cast<size_t>((length + period - 1) / period);
  const size_t each = (periods + most - 1) / most;
  grid.width = period * static_cast<Nanos>(each);
  grid.count = (periods + each - 1) / each;
  return grid;
}

TickGrid GridOfRows(const JobDescription& job, size_t rows, size_t most) {
  return GridOf(job, std::clamp(kMostInRows / std::max<size_t>(1, rows), kFewestRowTicks, most));
}

TickFiller::TickFiller(const TickGrid& grid, bool counts)
    : grid_(&grid), counts_(counts), sum_(grid.count), weight_(grid.count) {}

void TickFiller::Add(Nanos time, double value) {
  if (!std::isfinite(value)) return;
  if (!counts_) {
    const size_t tick = grid_->At(time);
    sum_[tick] += value;
    weight_[tick] += 1;
    return;
  }
  if (any_ && time > time_ && value >= value_) {
    AddAmount(time_, time, (value - value_) / (static_cast<double>(time - time_) / kSecond));
  }
  any_ = true;
  time_ = time;
  value_ = value;
}

void TickFiller::AddAmount(Nanos from, Nanos to, double rate) {
  const Nanos end = grid_->Begin(grid_->count);
  from = std::max(from, grid_->first);
  to = std::min(to, end);
  for (size_t tick = grid_->At(from + 1); from < to && tick < grid_->count; ++tick) {
    const Nanos until = std::min(to, grid_->Begin(tick + 1));
    const double share = static_cast<double>(until - from) / static_cast<double>(grid_->width);
    sum_[tick] += rate * share;
    weight_[tick] += share;
    from = until;
  }
}

std::vector<double> TickFiller::Take() const {
  std::vector<double> out(sum_.size(), std::numeric_limits<double>::quiet_NaN());
  for (size_t t = 0; t < out.size(); ++t) {
    const double least = counts_ ? kKnown : 1;
    if (weight_[t] >= least) out[t] = sum_[t] / weight_[t];
  }
  return out;
}

void AddKnown(const std::vector<double>& from, std::vector<double>& to) {
  if (to.empty()) {
    to = from;
    return;
  }
  for (size_t t = 0; t < to.size(); ++t) {
    if (!std::isnan(from[t])) to[t] = std::isnan(to[t]) ? from[t] : to[t] + from[t];
  }
}

}  // namespace sonde::insight
