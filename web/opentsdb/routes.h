// The endpoints of OpenTSDB.
//
// Thread safety: constants.
#pragma once

#include <span>

#include "web/route/route.h"

namespace sonde::web {

std::span<const Route> OpenTsdbRoutes();

}  // namespace sonde::web
