// Which function answers which path.
//
// Paths are compared as a whole: there is no prefix matching and no file system behind them.
//
// Thread safety: Dispatch from any thread.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "core/time.h"
#include "web/data_source.h"
#include "web/http.h"
#include "web/route_doc.h"

namespace sonde::web {

// Runs a function on one of the server's threads: what lasts must not be done on the threads of the
// data source. An empty one calls the function at once.
using Executor = std::function<void(std::function<void()>)>;

struct Context {
  std::shared_ptr<const DataSource> source;
  const Clock* clock = &Clock::System();
  Executor executor;
  bool nan_null = false;  // OpenTSDB's answers have null for NaN, unless the request says otherwise
};

using Handler = void (*)(const Context& context, const Request& request, Reply reply);

struct Route {
  std::string_view path;
  Handler get = nullptr;   // also answers HEAD
  Handler post = nullptr;  // its body is JSON
  RouteDoc doc = {};
  RouteDoc post_doc = {};    // where POST differs from what doc says; else empty
  Handler put = nullptr;     // its body is JSON, as that of POST
  Handler remove = nullptr;  // DELETE
  RouteDoc remove_doc = {};
};

// Finds the endpoint and calls it; answers 404, 405 and 415 by itself. No exception leaves it.
void Dispatch(const Context& context, const Request& request, Reply reply);

// Every route there is, by family.
struct RouteFamily {
  std::string_view name;
  std::span<const Route> routes;
};
std::span<const RouteFamily> RouteFamilies();

// The routes of each family, in the file of that name.
std::span<const Route> PageRoutes();
std::span<const Route> JobRoutes();
std::span<const Route> MetricsRoutes();
std::span<const Route> ProfileRoutes();
std::span<const Route> SeriesRoutes();
std::span<const Route> OpenTsdbRoutes();
std::span<const Route> CounterRoutes();
std::span<const Route> JoinRoutes();
std::span<const Route> AlarmRoutes();
std::span<const Route> PushRoutes();
std::span<const Route> TopologyRoutes();
std::span<const Route> TraceRoutes();
std::span<const Route> QueueRoutes();
std::span<const Route> StepRoutes();
std::span<const Route> TagRoutes();
std::span<const Route> DiffRoutes();
std::span<const Route> PartRoutes();
std::span<const Route> OpenApiRoutes();

}  // namespace sonde::web
