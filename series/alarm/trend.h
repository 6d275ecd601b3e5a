// The trend of a number: the line through its last half minute, if the last seconds go the same
// way. A number that has stopped moving has no trend.
//
// Thread safety: none.
#pragma once

#include <array>
#include <cstddef>
#include <optional>

#include "core/time.h"
#include "series/store/reduced.h"

namespace sonde::alarms {

class Trend {
 public:
  static constexpr Nanos kWindow = 30 * kSecond;
  static constexpr Nanos kShortest = 2 * kSecond;  // of points that make a line

  // Times ascend. Another owner's numbers begin a line of their own.
  void Add(Nanos time, double value, Owner owner);
  // Change per second; none while there is no line.
  std::optional<double> Slope() const;

 private:
  static constexpr Nanos kRecent = 3 * kSecond;
  static constexpr size_t kPoints = 32;
  struct Point {
    Nanos time;
    double value;
  };
  const Point& At(size_t i) const { return points_[(first_ + i) % kPoints]; }

  std::array<Point, kPoints> points_{};  // a ring
  size_t first_ = 0;
  size_t count_ = 0;
  Owner owner_;
};

}  // namespace sonde::alarms
