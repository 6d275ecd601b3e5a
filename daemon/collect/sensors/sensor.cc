#include "daemon/collect/sensors/sensor.h"

#include <algorithm>
#include <cmath>

namespace sonde::collect {
namespace {

// More than the domain of any such counter draws. A counter that falls and would have to have
// counted faster than this was set back by its driver: it did not wrap around.
constexpr double kMostWatts = 5'000;

}  // namespace

double ParseSensor(std::string_view text) {
  Cursor at(text);
  at.SkipBlanks();
  const double sign = at.Skip("-") ? -1 : 1;
  uint64_t value = 0;
  if (at.AtEnd() || at.Rest().front() < '0' || at.Rest().front() > '9') return kMissing;
  if (!at.Unsigned(value)) return kMissing;
  at.SkipBlanks();
  at.Skip("\n");
  return at.AtEnd() ? sign * static_cast<double>(value) : kMissing;
}

double ParseQuantity(std::string_view text, std::string_view unit) {
  Cursor at(text);
  const double value = at.Decimal();
  // A unit that follows at once is the rest of a number that was none.
  if (at.AtEnd() || at.Rest().front() != ' ') return kMissing;
  return at.Word() == unit ? value : kMissing;
}

double EnergyCounter::Add(double microjoules, Nanos now) {
  if (std::isnan(microjoules)) return kMissing;
  if (std::isnan(last_)) {
    total_ = microjoules;
  } else if (microjoules >= last_) {
    total_ += microjoules - last_;
  } else {
    const double added = microjoules + (range_ - last_);
    const auto elapsed = static_cast<double>(std::max(now - read_at_, kSecond)) / kSecond;
    // False also where there is no range.
    if (added >= 0 && added <= kMostWatts * 1e6 * elapsed) total_ += added;
  }
  last_ = microjoules;
  read_at_ = now;
  return total_;
}

}  // namespace sonde::collect
