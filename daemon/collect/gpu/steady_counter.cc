#include "daemon/collect/gpu/steady_counter.h"

#include <cmath>

namespace sonde::collect::gpu {
namespace {

// Some counters are renewed ten times a second, so a rise may be of a longer time than passed.
constexpr Nanos kSlack = kSecond;

double Seconds(Nanos duration) {
  return static_cast<double>(duration) / static_cast<double>(kSecond);
}

}  // namespace

double SteadyCounter::Add(double raw, Nanos at, double most_per_second) {
  if (!(raw >= 0)) return kMissing;
  const double rise = raw - last_raw_;  // NaN the first time
  if (rise > 0 && rise <= most_per_second * Seconds(at - last_at_ + kSlack)) total_ += rise;
  last_raw_ = raw;
  last_at_ = at;
  return total_;
}

double SteadyCounter::Integrate(double rate, Nanos at) {
  const double before = last_rate_;
  const Nanos since = at - last_at_;
  last_rate_ = rate;
  last_at_ = at;
  if (std::isnan(rate)) return kMissing;
  if (!std::isnan(before) && since > 0) total_ += (rate + before) / 2 * Seconds(since);
  return total_;
}

}  // namespace sonde::collect::gpu
