// Opening the machine's events as root for a daemon that may not: energy meters and memory
// controllers, which count for the whole node; see launcher/launch.h.
//
// site_policy.h says who may have them. Only devices that are known to be of these kinds are
// opened.
//
// Thread safety: functions without state.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "launcher/launch.h"
#include "launcher/perf_open.h"

namespace sonde::launch {

// `devices`: where the kernel lists them; a test injects its own.
TaskEvents OpenMachineEvents(std::span<const MachineEvent> events,
                             const std::string& devices = "/sys/bus/event_source/devices");

// Opens the events a few at a time, for slurmstepd has threads, and the kernel takes long to give
// such a process more than 64 descriptors. Hands each 'M' packet to `send` with its descriptors,
// and then closes them.
void OfferMachineEvents(std::span<const MachineEvent> events,
                        const std::function<void(const Writer&, std::span<const int>)>& send);

}  // namespace sonde::launch
