// Whether an event can be counted here.
//
// Thread safety: functions without state.
#pragma once

#include <string>

#include "core/status.h"
#include "launcher/launch.h"

namespace sonde::collect {

// Counts the event for this process, in user space, and stops at once. The plugin, which opens
// events as root, may be allowed more.
Status TryEvent(const launch::PerfEvent& event);

// What it means that perf_event_open gave this errno.
std::string WhyNotCounted(int error);

}  // namespace sonde::collect
