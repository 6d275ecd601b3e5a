// Finds the function that answers a path.
//
// Paths are compared as a whole: there is no prefix matching, and no files are served.
//
// Any page can have a browser GET an address, so a GET that changes something (RouteDoc::changes,
// for clients of metric-proxy's) is for programs, which show the token in a header of their own. To
// a browser, and to HEAD, it is 405. tests/unit/web_changes_test.cc goes through all routes.
//
// Thread safety: Dispatch from any thread.
#pragma once

#include <span>
#include <string_view>

#include "web/http/http.h"
#include "web/route/route.h"

namespace sonde::web {

// Finds the endpoint and calls it; answers 404, 405 and 415 by itself. No exception leaves it.
void Dispatch(const Context& context, const Request& request, Reply reply);

// All routes, by family.
struct RouteFamily {
  std::string_view name;
  std::span<const Route> routes;
  bool proxys = false;  // metric-proxy's: its clients read errors (web/proxy/operation.h)
};
std::span<const RouteFamily> RouteFamilies();

}  // namespace sonde::web
