// Opening the machine's events as root for a daemon that may not: energy meters and memory
// controllers, which count for the whole node; see core/launch.h.
//
// What they tell is of everybody on the node, and finely resolved energy tells what others compute
// (CVE-2020-8694). So they are for steps that have the node to themselves, unless the administrator
// says otherwise, and nothing is opened but devices that are known to be of these kinds.
//
// Thread safety: functions without state.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "core/launch.h"
#include "spank/perf_open.h"
#include "spank/plugin_config.h"

namespace sonde::spank {

// Whether a job has a node to itself: whether Slurm gave it there as many cores, or the step as
// many CPUs, as processors are online. `cores` is S_JOB_ALLOC_CORES, `cpus` S_JOB_NCPUS, both from
// the credential that slurmctld signed; the environment is the user's to write. A step that leaves
// hardware threads idle counts as one that shares the node.
bool HasNodeAlone(std::string_view cores, uint32_t cpus, long processors_online);

// Whether a step may have them.
bool MayCountMachine(PluginConfig::Machine choice, bool alone);

// `devices`: where the kernel lists them; a test injects its own.
TaskEvents OpenMachineEvents(std::span<const launch::MachineEvent> events,
                             const std::string& devices = "/sys/bus/event_source/devices");

// Opens them a few at a time, for slurmstepd has threads, and the kernel takes long to give such a
// process more than 64 descriptors; hands each 'M' packet to `send` with its descriptors, which are
// closed afterwards.
void OfferMachineEvents(
    std::span<const launch::MachineEvent> events,
    const std::function<void(const launch::Writer&, std::span<const int>)>& send);

// How many a list such as "0-3,8" names; 0 if it is none.
long CountListed(std::string_view list);

}  // namespace sonde::spank
