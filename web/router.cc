#include "web/router.h"

#include <algorithm>
#include <cctype>
#include <exception>
#include <optional>
#include <string>

#include "core/log.h"
#include "web/api/routes.h"
#include "web/http/gzip.h"
#include "web/live/live.h"
#include "web/openapi.h"
#include "web/opentsdb/routes.h"
#include "web/pages/pages.h"
#include "web/prometheus/routes.h"
#include "web/proxy/operation.h"
#include "web/proxy/routes.h"
#include "web/proxy/traces/routes.h"

namespace sonde::web {
namespace {

constexpr size_t kMaxUnpacked = 8u << 20;

struct Found {
  const Route* route = nullptr;  // nullptr: there is no such path
  bool proxys = false;
};

Found FindRoute(std::string_view path) {
  for (const RouteFamily& family : RouteFamilies()) {
    for (const Route& route : family.routes) {
      if (route.path == path) return {&route, family.proxys};
    }
  }
  return {};
}

// A body without a type is taken for JSON; short programs often send none.
bool IsJson(std::string_view content_type) {
  constexpr std::string_view kJson = "application/json";
  if (content_type.empty()) return true;
  std::string_view type = content_type.substr(0, content_type.find(';'));
  while (type.ends_with(' ') || type.ends_with('\t')) type.remove_suffix(1);
  return std::equal(type.begin(), type.end(), kJson.begin(), kJson.end(), [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == b;
  });
}

// A browser that says neither whose page asks nor what it sends: another page may have it send
// that, while for JSON it would have to ask first (CORS). Origins that it names were looked at
// (Auth).
bool SaysNothing(const Request& request) {
  return request.by_browser && request.content_type.empty() && request.origin.empty() &&
         request.fetch_site.empty();
}

Response WrongMethod(const Route& route) {
  Response response = ErrorResponse(405, "Method not allowed",
                                    "the HTTP method is not permitted for this endpoint");
  std::string allowed;
  const char* get = route.doc.changes ? "GET" : "GET, HEAD";
  for (const auto& [handler, name] : {std::pair(route.get, get),
                                      {route.post, "POST"},
                                      {route.put, "PUT"},
                                      {route.remove, "DELETE"}}) {
    if (handler != nullptr) allowed += (allowed.empty() ? "" : ", ") + std::string(name);
  }
  response.headers.emplace_back("Allow", allowed);
  return response;
}

// A GET that changes something, of whom it is not for; see above.
std::optional<Response> RefuseChange(const Route& route, const Request& request) {
  const bool head = request.method == Method::kHead;
  if (!route.doc.changes || !(head || (request.method == Method::kGet && request.by_browser))) {
    return {};
  }
  Response response = ErrorResponse(
      405,
      head ? "this path changes something: HEAD does not"
           : "this path changes something, which a browser must not do by a GET",
      route.post != nullptr ? "send a POST; programs that GET it send the header 'Authorization: "
                              "Bearer TOKEN'"
                            : "programs send the header 'Authorization: Bearer TOKEN'");
  response.headers.emplace_back("Allow", route.post != nullptr ? "GET, POST" : "GET");
  return response;
}

Handler HandlerOf(const Route& route, Method method) {
  switch (method) {
    case Method::kGet:
    case Method::kHead:
      return route.get;
    case Method::kPost:
      return route.post;
    case Method::kPut:
      return route.put;
    case Method::kDelete:
      return route.remove;
    case Method::kOptions:
    case Method::kOther:
      break;
  }
  return nullptr;
}

void CallEndpoint(const Context& context, const Request& request, const Route* route,
                  const Reply& reply) {
  if (route == nullptr) {
    return reply(ErrorResponse(404, "there is no such endpoint; docs/endpoints.md lists them"));
  }
  const Handler handler = HandlerOf(*route, request.method);
  const bool posting = request.method == Method::kPost || request.method == Method::kPut ||
                       (request.method == Method::kDelete && !request.body.empty());
  if (handler == nullptr) return reply(WrongMethod(*route));
  if (std::optional<Response> refused = RefuseChange(*route, request)) {
    return reply(*std::move(refused));
  }
  if (posting && (!IsJson(request.content_type) || SaysNothing(request))) {
    return reply(ErrorResponse(415, "the body must be JSON: Content-Type: application/json"));
  }
  if (request.content_encoding.empty() || request.content_encoding == "identity") {
    return handler(context, request, reply);
  }
  if (request.content_encoding != "gzip") {
    return reply(ErrorResponse(415, "the body must not be compressed but by gzip"));
  }
  Result<std::string> body = Gunzip(request.body, kMaxUnpacked);
  if (!body.ok()) return reply(ErrorResponse(body.status()));
  Request unpacked = request;
  unpacked.body = *std::move(body);
  handler(context, unpacked, reply);
}

}  // namespace

std::span<const RouteFamily> RouteFamilies() {
  constexpr bool kProxys = true;
  static const RouteFamily families[] = {
      {"Pages", PageRoutes()},
      {"Jobs", JobRoutes(), kProxys},
      {"Prometheus", MetricsRoutes(), kProxys},
      {"Profiles", RunRoutes(), kProxys},
      {"Models", ModelRoutes(), kProxys},
      {"Profile", ProfileRoutes()},
      {"Series", SeriesRoutes()},
      {"OpenTSDB", OpenTsdbRoutes()},
      {"Counters", CounterRoutes()},
      {"Exporters", JoinRoutes(), kProxys},
      {"Other proxies", TreeRoutes(), kProxys},
      {"Alarms", AlarmRoutes(), kProxys},
      {"Live", LiveRoutes()},
      {"Pushed values", PushRoutes(), kProxys},
      {"Topology", TopologyRoutes(), kProxys},
      {"Lists of traces", TraceListRoutes(), kProxys},
      {"Traces", TraceRoutes(), kProxys},
      {"Periods", FtioRoutes(), kProxys},
      {"Settings of FTIO", FtioSettingsRoutes(), kProxys},
      {"Queue", QueueRoutes(), kProxys},
      {"Steps", StepRoutes()},
      {"Tags", TagRoutes()},
      {"Comparison", DiffRoutes()},
      {"Many runs", ManyRunRoutes()},
      {"Runs of different sizes", RunModelRoutes()},
      {"Conclusions", InsightRoutes()},
      {"Overview", OverviewRoutes()},
      {"Tree", LinkTreeRoutes()},
      {"Heatmaps", HeatmapRoutes()},
      {"Trials of alarm rules", AlarmTryRoutes()},
      {"Parts of answers", PartRoutes()},
      {"Damage", DamageRoutes()},
      {"Description", OpenApiRoutes()},
  };
  return families;
}

void Dispatch(const Context& context, const Request& request, Reply reply) {
  const Found found = FindRoute(request.path);
  if (found.proxys) {
    reply = [reply = std::move(reply)](Response response) {
      reply(AsOperation(std::move(response)));
    };
  }
  try {
    CallEndpoint(context, request, found.route, reply);
  } catch (const std::exception& e) {
    log::Error("HTTP: answering {}: {}", request.path, e.what());
    reply(ErrorResponse(500, "an internal error; the log of the server has its text"));
  }
}

}  // namespace sonde::web
