// The endpoints of metric-proxy, each family in the file of that name; those of traces are in
// traces/.
//
// Thread safety: constants.
#pragma once

#include <span>

#include "web/route/route.h"

namespace sonde::web {

std::span<const Route> AlarmRoutes();
std::span<const Route> JobRoutes();
std::span<const Route> JoinRoutes();
std::span<const Route> ModelRoutes();
std::span<const Route> PushRoutes();
std::span<const Route> QueueRoutes();
std::span<const Route> RunRoutes();  // profiles.cc
std::span<const Route> TopologyRoutes();
std::span<const Route> TreeRoutes();

}  // namespace sonde::web
