#include "series/alarm/trend.h"

#include <cmath>

namespace sonde::alarms {

void Trend::Add(Nanos time, double value, Owner owner) {
  if (owner != owner_) count_ = 0;
  owner_ = owner;
  while (count_ > 0 && At(0).time < time - kWindow) {
    first_ = (first_ + 1) % kPoints;
    --count_;
  }
  // Ticks may be short: the newest point moves until it is far enough from the one before.
  const bool crowded = count_ > 1 && At(count_ - 1).time - At(count_ - 2).time <
                                         kWindow / static_cast<Nanos>(kPoints - 1);
  if (crowded) --count_;
  if (count_ == kPoints) {
    first_ = (first_ + 1) % kPoints;
    --count_;
  }
  points_[(first_ + count_++) % kPoints] = {time, value};
}

// Least squares; times and values from the first point on, so that nothing is lost to their size.
std::optional<double> Trend::Slope() const {
  if (count_ < 3 || At(count_ - 1).time - At(0).time < kShortest) return std::nullopt;
  double x_sum = 0, y_sum = 0, xx = 0, xy = 0;
  for (size_t i = 0; i < count_; ++i) {
    const double x = static_cast<double>(At(i).time - At(0).time) * 1e-9;
    const double y = At(i).value - At(0).value;
    x_sum += x;
    y_sum += y;
    xx += x * x;
    xy += x * y;
  }
  const auto n = static_cast<double>(count_);
  const double slope = (n * xy - x_sum * y_sum) / (n * xx - x_sum * x_sum);
  const Point& now = At(count_ - 1);
  size_t i = 0;
  while (i + 2 < count_ && now.time - At(i).time > kRecent) ++i;
  const double recent =
      (now.value - At(i).value) / (static_cast<double>(now.time - At(i).time) * 1e-9);
  if ((recent > 0) != (slope > 0)) return 0.0;
  return std::abs(recent) < std::abs(slope) ? recent : slope;
}

}  // namespace sonde::alarms
