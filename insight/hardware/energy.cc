#include "insight/hardware/energy.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace sonde::insight {
namespace {

// With so much power at rest.
double JoulesWith(const NodeUse& use, double idle_watts, double& idle_part) {
  const double idle = std::min(use.joules, idle_watts * use.seconds);
  const double by_use = use.busy_cpu > 0 ? std::clamp(use.step_cpu / use.busy_cpu, 0.0, 1.0) : 0;
  const double by_size = std::clamp(use.allocated / use.cpus, 0.0, 1.0);
  idle_part = idle > 0 ? idle * by_size : 0;
  return idle_part + (use.joules - idle) * by_use;
}

}  // namespace

IdlePower IdlePowerOf(std::span<const double> watts, std::span<const double> busy_cpus,
                      double cpus) {
  IdlePower idle;
  std::vector<double> x;
  std::vector<double> y;
  for (size_t i = 0; i < std::min(watts.size(), busy_cpus.size()); ++i) {
    if (std::isnan(watts[i])) continue;
    if (!(watts[i] >= idle.lowest)) idle.lowest = watts[i];
    if (std::isnan(busy_cpus[i])) continue;
    x.push_back(busy_cpus[i]);
    y.push_back(watts[i]);
  }
  if (x.size() < kFewest) return idle;
  const auto n = static_cast<double>(x.size());
  double mean_x = 0;
  double mean_y = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    mean_x += x[i] / n;
    mean_y += y[i] / n;
  }
  double xx = 0;
  double xy = 0;
  double yy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    xx += (x[i] - mean_x) * (x[i] - mean_x);
    xy += (x[i] - mean_x) * (y[i] - mean_y);
    yy += (y[i] - mean_y) * (y[i] - mean_y);
  }
  std::ranges::sort(x);
  const double range = x[x.size() * 95 / 100] - x[x.size() * 5 / 100];
  if (!(range >= kLeastRange * cpus) || !(xx > 0) || !(xy * xy >= kLeastExplained * xx * yy)) {
    return idle;
  }
  const double intercept = mean_y - xy / xx * mean_x;
  if (xy > 0 && intercept >= 0 && intercept <= idle.lowest) idle.watts = intercept;
  return idle;
}

EnergyShare ShareOf(const NodeUse& use) {
  EnergyShare share;
  // A CPU that Slurm keeps for itself is no neighbour.
  if (use.allocated >= use.cpus - 0.5) {
    share.joules = share.low = share.high = use.joules;
    share.whole_node = true;
    if (!std::isnan(use.idle.watts))
      share.idle = std::min(use.joules, use.idle.watts * use.seconds);
    return share;
  }
  if (!(use.busy_cpu >= 0) || !(use.step_cpu >= 0)) return share;
  double part = 0;
  const double without = JoulesWith(use, 0, part);
  share.joules = share.low = share.high = without;
  if (!(use.allocated > 0)) return share;
  if (use.idle.lowest >= 0) {
    const double most = JoulesWith(use, use.idle.lowest, part);
    share.low = std::min(without, most);
    share.high = std::max(without, most);
  }
  if (!std::isnan(use.idle.watts)) share.joules = JoulesWith(use, use.idle.watts, share.idle);
  return share;
}

double CarbonGrams(double joules, double pue, double grams_per_kwh) {
  return joules / kJoulesPerKwh * pue * grams_per_kwh;
}

bool IsPerSecond(const std::string& unit) {
  return unit.ends_with("/s") || unit.ends_with("_per_second") || unit.ends_with(" per second") ||
         unit == "hertz" || unit == "Hz";
}

}  // namespace sonde::insight
