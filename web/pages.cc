// GET / and the files it needs.
#include "web/pages.h"

#include "web/router.h"

namespace sonde::web {
namespace {

constexpr std::string_view kContentPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

std::string_view ContentType(std::string_view name) {
  if (name.ends_with(".html")) return "text/html; charset=UTF-8";
  if (name.ends_with(".js")) return "text/javascript; charset=UTF-8";
  if (name.ends_with(".css")) return "text/css; charset=UTF-8";
  return "text/plain; charset=UTF-8";
}

void GetPage(const Context&, const Request& request, Reply reply) {
  const std::string_view name =
      request.path == "/" ? "index.html" : std::string_view(request.path).substr(1);
  for (const Page& page : Pages()) {
    if (page.name != name) continue;
    Response response;
    response.content_type = ContentType(name);
    response.body = page.content;
    response.etag = page.etag;
    response.headers.emplace_back("Content-Security-Policy", kContentPolicy);
    return reply(std::move(response));
  }
  reply(ErrorResponse(404, "there is no such page"));
}

constexpr Route kRoutes[] = {
    {"/", GetPage},
    {"/alarms.js", GetPage},
    {"/app.js", GetPage},
    {"/chart.js", GetPage},
    {"/dom.js", GetPage},
    {"/facts.js", GetPage},
    {"/histogram.js", GetPage},
    {"/job.js", GetPage},
    {"/lines.js", GetPage},
    {"/list.js", GetPage},
    {"/metrics.js", GetPage},
    {"/moments.js", GetPage},
    {"/numbers.js", GetPage},
    {"/server.js", GetPage},
    {"/states.js", GetPage},
    {"/timeline.js", GetPage},
    {"/tip.js", GetPage},
    {"/style.css", GetPage},
    {"/vendor/uPlot/uPlot.iife.min.js", GetPage},
    {"/vendor/uPlot/uPlot.min.css", GetPage},
    {"/vendor/uPlot/LICENSE", GetPage},
};

}  // namespace

std::span<const Route> PageRoutes() { return kRoutes; }

}  // namespace sonde::web
