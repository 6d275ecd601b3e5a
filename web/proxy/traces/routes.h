// The endpoints of metric-proxy's traces and of FTIO, each family in the file of that name.
//
// Thread safety: constants.
#pragma once

#include <span>

#include "web/route/route.h"

namespace sonde::web {

std::span<const Route> FtioRoutes();
std::span<const Route> FtioSettingsRoutes();
std::span<const Route> TraceListRoutes();  // trace_list.cc
std::span<const Route> TraceRoutes();

}  // namespace sonde::web
