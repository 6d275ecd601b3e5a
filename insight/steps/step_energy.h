// The energy of a finished step, from what its profile has of its nodes.
//
// Meters overlap, so each node's energy is taken from the first of these that it has:
//
//   node        Cray's meter of the whole node (domain "node"), else a meter of the whole machine
//               that ACPI names (hwmon "power_meter"), whose watts are summed up over time
//   processors  the packages and their DRAM (RAPL, by powercap or perf), or Cray's "cpu" and
//               "memory". Of RAPL "psys" is not taken: what is in it differs between machines
//
// and never from others: not from cores and uncore, which are parts of a package, not from other
// sensors, of which nobody says what they contain. GPUs are those of the step, by their own meters:
// added to `processors`, which do not contain them, and taken off `node`, which does, before the
// rest is shared. GPUs of others on a shared node stay in that rest.
//
// What is shared is shared by insight/hardware/energy.h, node by node, over the ticks for which the
// node's power is known. Where the profile has no energy of nodes but
// node_step_energy_joules_total, that is taken.
//
// Thread safety: functions without state.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/status.h"
#include "insight/hardware/energy.h"
#include "profiles/archive/archive.h"
#include "profiles/model/profile.h"

namespace sonde::insight {

enum class EnergyMeter : unsigned char { kNone, kNode, kProcessors };
std::string_view ToString(EnergyMeter meter);  // "none", "node", "processors"

// A number that is not known is NaN.
struct NodeEnergy {
  std::string host;
  EnergyMeter meter = EnergyMeter::kNone;
  bool with_memory = false;  // kProcessors: the memory's energy is in it
  NodeUse use;               // joules without the step's GPUs
  EnergyShare share;
  double gpu_joules = 0;  // of the step's own; NaN: none was measured
};

struct FigureEnergy {
  std::string name;
  std::string unit;            // of what was done; of a speed without "per second"
  double value = 0;            // as the application said it
  double joules_per_unit = 0;  // energy / value; of a speed mean power / value
  double units_per_kwh = 0;
};

struct StepEnergy {
  std::vector<NodeEnergy> nodes;  // of which there is energy
  double joules = 0;              // all together; NaN: nothing was measured
  std::string no_energy;          // and then why, in a sentence
  double low = 0, high = 0;       // see insight/hardware/energy.h
  double processor_joules = 0;    // what is not of GPUs
  double gpu_joules = 0;
  double seconds = 0;  // the step's duration
  double mean_watts = 0;
  double joules_per_task = 0;
  std::vector<FigureEnergy> figures;
  std::vector<std::string> missing;  // what is not in it, in words
  std::optional<double> carbon_grams;
};

struct CarbonOptions {
  std::optional<double> grams_per_kwh;
  std::optional<double> pue;
};

Result<StepEnergy> EnergyOf(const Archive& archive, const std::string& key, const Profile& profile,
                            const CarbonOptions& carbon);

std::string EnergyToJson(const StepEnergy& energy, const Profile& profile);

}  // namespace sonde::insight
