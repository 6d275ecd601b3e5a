// The metric of the node's energy, whoever measures it.
//
// Thread safety: a constant.
#pragma once

#include "core/metric.h"

namespace sonde::collect {

inline constexpr MetricDecl kNodeEnergy = {
    "node_energy_joules_total",
    "joules",
    MetricType::kCounter,
    3,
    Reduction::kSum,
    "Energy used. Tags domain (package-0, dram-0, psys, node, cpu, memory, accel0 or a sensor), "
    "source (rapl, perf, cray, hwmon)."};

}  // namespace sonde::collect
