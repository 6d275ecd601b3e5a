// Opening the machine's events as root for a daemon that may not: energy meters and memory
// controllers, which count for the whole node; see launcher/launch.h.
//
// Who may have them says site_policy.h. Nothing is opened but devices that are known to be of these
// kinds.
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

// Opens them a few at a time, for slurmstepd has threads, and the kernel takes long to give such a
// process more than 64 descriptors; hands each 'M' packet to `send` with its descriptors, which are
// closed afterwards.
void OfferMachineEvents(std::span<const MachineEvent> events,
                        const std::function<void(const Writer&, std::span<const int>)>& send);

}  // namespace sonde::launch
