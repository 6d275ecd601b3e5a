// The endpoints that Prometheus scrapes and uses for discovery.
//
// Thread safety: constants.
#pragma once

#include <span>

#include "web/route/route.h"

namespace sonde::web {

std::span<const Route> MetricsRoutes();

}  // namespace sonde::web
