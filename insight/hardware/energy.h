// A step's share of the energy of a node that it may not have for itself.
//
//   energy = idle + dynamic
//   idle     P0 * seconds * allocated CPUs / CPUs of the node
//   dynamic  (node's energy - P0 * seconds) * CPU time of the step / busy CPU time of the node
//
// where P0 is what the node draws when nobody computes. This is the ratio model of Kepler (Amaral
// et al., "Kepler: A framework to calculate the energy consumption of containerized applications",
// IEEE CLOUD 2023): what is dynamic by use, what is idle by what was reserved, as the GHG Protocol
// has it for shared computers ("ICT Sector Guidance", 2017, chapter 4). A step that has all CPUs of
// the node has all of its energy. Where P0 is not known all energy counts as dynamic, which is the
// rule of node_step_energy_joules_total.
//
// Its error: a second of CPU time counts the same whatever is computed in it, whether both threads
// of a core are busy, and whatever the clock. A program of wide vectors or of much memory traffic
// draws more than it gets here, and its neighbours get the rest. Power meters of one process that
// work by such ratios were found to disagree by much with each other and with external meters (Jay,
// Ostapenco, Lefevre, Trystram, Orgerie, Fichel, "An experimental comparison of software-based
// power meters: focus on CPU and GPU", CCGrid 2023). `low` and `high` do not contain this error,
// but only that of not knowing P0: they are the energies with P0 = 0 and with the lowest power that
// was seen.
//
// P0 is the intercept of the line of least squares of the node's power over its busy CPUs. Power
// grows about linearly with use (Fan, Weber, Barroso, "Power provisioning for a warehouse-sized
// computer", ISCA 2007). It is taken only if the line explains kLeastExplained of the variance, the
// busy CPUs differ by kLeastRange of all CPUs between the 5th and 95th percentile, there are
// kFewest points, and it lies between 0 and the lowest power. Of a node that is never idle the true
// power at rest is lower, as clocks and voltages fall: the line does not know that.
//
// Thread safety: values and functions without state.
#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <string>

namespace sonde::insight {

inline constexpr double kLeastExplained = 0.5;
inline constexpr double kLeastRange = 0.1;
inline constexpr size_t kFewest = 20;

struct IdlePower {
  double watts = std::numeric_limits<double>::quiet_NaN();   // P0; NaN: does not show
  double lowest = std::numeric_limits<double>::quiet_NaN();  // power that was seen
};
// Of as many ticks each; NaN: missing. `cpus` of the node.
IdlePower IdlePowerOf(std::span<const double> watts, std::span<const double> busy_cpus,
                      double cpus);

// One node, over the time for which its energy is known.
struct NodeUse {
  double joules = 0;
  double seconds = 0;
  double step_cpu = 0;   // seconds
  double busy_cpu = 0;   // seconds, of all processes on the node, those of the step with them
  double allocated = 0;  // CPUs of the step; NaN: not known
  double cpus = 0;       // of the node
  IdlePower idle;
};

struct EnergyShare {
  double joules = std::numeric_limits<double>::quiet_NaN();
  double low = std::numeric_limits<double>::quiet_NaN();
  double high = std::numeric_limits<double>::quiet_NaN();
  double idle = std::numeric_limits<double>::quiet_NaN();  // part of joules; NaN: not told apart
  bool whole_node = false;
};
// NaN where the CPU times are not known and the node is shared.
EnergyShare ShareOf(const NodeUse& use);

// Grams of CO2 equivalent: kWh * PUE * g/kWh (Green Algorithms: Lannelongue, Grealey, Inouye,
// "Green Algorithms: quantifying the carbon footprint of computation", Advanced Science 8(12),
// 2021).
double CarbonGrams(double joules, double pue, double grams_per_kwh);

inline constexpr double kJoulesPerKwh = 3.6e6;

// Whether a figure of merit with this unit is a speed, so that it goes with power and not with
// energy: "cells/s", "flops_per_second", "hertz".
bool IsPerSecond(const std::string& unit);

}  // namespace sonde::insight
