// Sonde's own endpoints below /api/v1, each family in the file of that name.
//
// Thread safety: constants.
#pragma once

#include <span>

#include "web/route/route.h"

namespace sonde::web {

std::span<const Route> DamageRoutes();
std::span<const Route> DiffRoutes();
std::span<const Route> PartRoutes();
std::span<const Route> ProfileRoutes();
std::span<const Route> SeriesRoutes();
std::span<const Route> StepRoutes();
std::span<const Route> TagRoutes();

}  // namespace sonde::web
