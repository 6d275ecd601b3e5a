// Reading sensors: files of one number, in a fixed unit or with its unit behind it.
//
// Thread safety: functions without state and values.
#pragma once

#include <string_view>

#include "core/time.h"
#include "daemon/collect/read/parse.h"

namespace sonde::collect {

// A whole number, perhaps negative, that is all of the text but for blanks and the line's end, as
// in hwmon and powercap; otherwise kMissing.
double ParseSensor(std::string_view text);

// The number in front of `unit`, as in "1234 J 1600000000 us"; kMissing if another unit, or none,
// stands there.
double ParseQuantity(std::string_view text, std::string_view unit);

// Makes a counter of microjoules that starts again from 0 behind its range one that only rises.
class EnergyCounter {
 public:
  // `range`: the largest value before 0; kMissing if it is not known.
  explicit EnergyCounter(double range = kMissing) : range_(range) {}

  // The total, which starts with the first value; kMissing for what is missing.
  double Add(double microjoules, Nanos now);

 private:
  double range_;
  double last_ = kMissing;
  double total_ = kMissing;
  Nanos read_at_ = 0;
};

}  // namespace sonde::collect
