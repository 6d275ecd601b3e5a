// GET / and the files it needs.
#include "web/pages/pages.h"

#include <sys/stat.h>

#include "web/route/route.h"

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

// When this program was written; the pages are in it.
Nanos BuiltAt() {
  static const Nanos time = [] {
    struct stat info {};
    return stat("/proc/self/exe", &info) == 0 ? Nanos{info.st_mtime} * kSecond : Nanos{0};
  }();
  return time;
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
    response.last_modified = BuiltAt();
    response.headers.emplace_back("Content-Security-Policy", kContentPolicy);
    return reply(std::move(response));
  }
  reply(ErrorResponse(404, "there is no such page"));
}

constexpr RouteDoc kHtml = {
    .about = "The page for people; once with the token, which goes into a cookie",
    .params = {{"token", "traded for a cookie, by a redirect to the same address without it"}},
    .answer = "text/html",
    .also = 303};
constexpr RouteDoc kScript = {.about = "A script of the page", .answer = "text/javascript"};
constexpr RouteDoc kStyle = {.about = "A style sheet of the page", .answer = "text/css"};
constexpr RouteDoc kLicense = {.about = "The licence of uPlot", .answer = "text/plain"};

constexpr Route kRoutes[] = {
    {"/", GetPage, nullptr, kHtml},
    {"/alarms.js", GetPage, nullptr, kScript},
    {"/app.js", GetPage, nullptr, kScript},
    {"/chart.js", GetPage, nullptr, kScript},
    {"/diff.js", GetPage, nullptr, kScript},
    {"/diff_chart.js", GetPage, nullptr, kScript},
    {"/dom.js", GetPage, nullptr, kScript},
    {"/facts.js", GetPage, nullptr, kScript},
    {"/histogram.js", GetPage, nullptr, kScript},
    {"/job.js", GetPage, nullptr, kScript},
    {"/lines.js", GetPage, nullptr, kScript},
    {"/list.js", GetPage, nullptr, kScript},
    {"/live.js", GetPage, nullptr, kScript},
    {"/metrics.js", GetPage, nullptr, kScript},
    {"/moments.js", GetPage, nullptr, kScript},
    {"/numbers.js", GetPage, nullptr, kScript},
    {"/picks.js", GetPage, nullptr, kScript},
    {"/plot.js", GetPage, nullptr, kScript},
    {"/server.js", GetPage, nullptr, kScript},
    {"/states.js", GetPage, nullptr, kScript},
    {"/steps.js", GetPage, nullptr, kScript},
    {"/tags.js", GetPage, nullptr, kScript},
    {"/timeline.js", GetPage, nullptr, kScript},
    {"/tip.js", GetPage, nullptr, kScript},
    {"/style.css", GetPage, nullptr, kStyle},
    {"/vendor/uPlot/uPlot.iife.min.js", GetPage, nullptr, kScript},
    {"/vendor/uPlot/uPlot.min.css", GetPage, nullptr, kStyle},
    {"/vendor/uPlot/LICENSE", GetPage, nullptr, kLicense},
};

}  // namespace

std::span<const Route> PageRoutes() { return kRoutes; }

}  // namespace sonde::web
