// Opening the machine's events as root for a daemon that may not: energy meters and memory
// controllers, which count for the whole node; see core/launch.h.
//
// What they tell is of everybody on the node, and finely resolved energy tells what others compute
// (CVE-2020-8694). So they are for steps that have the node to themselves, unless the administrator
// says otherwise, and nothing is opened but devices that are known to be of these kinds.
//
// Thread safety: functions without state.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "core/launch.h"
#include "spank/environment.h"
#include "spank/perf_open.h"
#include "spank/plugin_config.h"

namespace sonde::spank {

// Whether the step's job has as many processors as are online, by SLURM_JOB_CPUS_PER_NODE of its
// environment.
bool HasNodeAlone(const Environment& environment, long processors_online);

// Whether the step may have them. `environment`: the step's.
bool MayCountMachine(PluginConfig::Machine choice, const Environment& environment,
                     long processors_online);

// `devices`: where the kernel lists them; a test injects its own.
TaskEvents OpenMachineEvents(std::span<const launch::MachineEvent> events,
                             const std::string& devices = "/sys/bus/event_source/devices");

// Opens them a few at a time, for slurmstepd has threads, and the kernel takes long to give such a
// process more than 64 descriptors; hands each 'M' packet to `send` with its descriptors, which are
// closed afterwards.
void OfferMachineEvents(
    std::span<const launch::MachineEvent> events,
    const std::function<void(const launch::Writer&, std::span<const int>)>& send);

// The fewest processors on a node, of a value such as "64(x2),32"; 0 if it is none.
long FewestProcessors(std::string_view cpus_per_node);

}  // namespace sonde::spank
