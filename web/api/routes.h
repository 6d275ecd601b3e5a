// Sonde's own endpoints below /api/v1, each family in the file of that name.
//
// Thread safety: constants.
#pragma once

#include <span>

#include "web/route/route.h"

namespace sonde::web {

std::span<const Route> AlarmTryRoutes();
std::span<const Route> CounterRoutes();
std::span<const Route> DamageRoutes();
std::span<const Route> DiffRoutes();
std::span<const Route> HeatmapRoutes();
std::span<const Route> InsightRoutes();
std::span<const Route> LinkTreeRoutes();
std::span<const Route> RunModelRoutes();
std::span<const Route> OverviewRoutes();
std::span<const Route> PartRoutes();
std::span<const Route> ProfileRoutes();
std::span<const Route> ManyRunRoutes();
std::span<const Route> SeriesRoutes();
std::span<const Route> StepRoutes();
std::span<const Route> TagRoutes();

}  // namespace sonde::web
