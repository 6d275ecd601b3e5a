// Ends the scraping of an exporter, for the endpoints that ask for it.
//
// Thread safety: a function without state.
#pragma once

#include <string>

#include "core/task.h"
#include "web/http/http.h"
#include "web/route/route.h"

namespace sonde::web {

inline constexpr RouteParam kWhereSeveralRun = {"job", "the step; needed where several run"};

// `target` is a HOST:PORT, with or without a path. In the step that the parameter `job` names, else
// in the one that runs. kNotFound: it is not scraped.
Task<Status> Unjoin(const Context& context, const Request& request, std::string target);

}  // namespace sonde::web
