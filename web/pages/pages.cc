// GET / and the files it needs.
#include "web/pages/pages.h"

#include <sys/stat.h>

#include <algorithm>
#include <iterator>

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

// nullptr if there is none.
const Page* FindPage(std::string_view path) {
  const std::string_view name = path == "/" ? "index.html" : path.substr(1);
  for (const Page& page : Pages()) {
    if (page.name == name) return &page;
  }
  return nullptr;
}

void GetPage(const Context&, const Request& request, Reply reply) { reply(PageAt(request.path)); }
constexpr RouteDoc kHtml = {
    .about =
        "The page for people, for whoever asks: it holds nothing of a step. A browser opens "
        "/#token=TOKEN",
    .answer = "text/html"};
constexpr RouteDoc kScript = {.about = "A script of the page", .answer = "text/javascript"};
constexpr RouteDoc kStyle = {.about = "A style sheet of the page", .answer = "text/css"};
constexpr RouteDoc kLicense = {.about = "The licence of uPlot", .answer = "text/plain"};

constexpr Route kRoutes[] = {
    {"/", GetPage, nullptr, kHtml},
    {"/alarms.js", GetPage, nullptr, kScript},
    {"/app.js", GetPage, nullptr, kScript},
    {"/chart.js", GetPage, nullptr, kScript},
    {"/dom.js", GetPage, nullptr, kScript},
    {"/events.js", GetPage, nullptr, kScript},
    {"/facts.js", GetPage, nullptr, kScript},
    {"/histogram.js", GetPage, nullptr, kScript},
    {"/job.js", GetPage, nullptr, kScript},
    {"/lines.js", GetPage, nullptr, kScript},
    {"/list/filters.js", GetPage, nullptr, kScript},
    {"/list/list.js", GetPage, nullptr, kScript},
    {"/list/query.js", GetPage, nullptr, kScript},
    {"/list/rows.js", GetPage, nullptr, kScript},
    {"/list/timeline.js", GetPage, nullptr, kScript},
    {"/list/timeline.css", GetPage, nullptr, kStyle},
    {"/live.js", GetPage, nullptr, kScript},
    {"/metrics.js", GetPage, nullptr, kScript},
    {"/moments.js", GetPage, nullptr, kScript},
    {"/numbers.js", GetPage, nullptr, kScript},
    {"/picks.js", GetPage, nullptr, kScript},
    {"/plot.js", GetPage, nullptr, kScript},
    {"/save.js", GetPage, nullptr, kScript},
    {"/server.js", GetPage, nullptr, kScript},
    {"/session.js", GetPage, nullptr, kScript},
    {"/states.js", GetPage, nullptr, kScript},
    {"/step/budget.js", GetPage, nullptr, kScript},
    {"/step/calls.js", GetPage, nullptr, kScript},
    {"/step/colours.js", GetPage, nullptr, kScript},
    {"/step/controls.js", GetPage, nullptr, kScript},
    {"/step/energy.js", GetPage, nullptr, kScript},
    {"/step/heat_svg.js", GetPage, nullptr, kScript},
    {"/step/heatmap.js", GetPage, nullptr, kScript},
    {"/step/inside.js", GetPage, nullptr, kScript},
    {"/step/matrix.js", GetPage, nullptr, kScript},
    {"/step/members.js", GetPage, nullptr, kScript},
    {"/step/overview.js", GetPage, nullptr, kScript},
    {"/step/plot_svg.js", GetPage, nullptr, kScript},
    {"/step/ranks.js", GetPage, nullptr, kScript},
    {"/step/roofline.js", GetPage, nullptr, kScript},
    {"/step/scale.js", GetPage, nullptr, kScript},
    {"/step/shown.js", GetPage, nullptr, kScript},
    {"/step/state.js", GetPage, nullptr, kScript},
    {"/step/tiles.js", GetPage, nullptr, kScript},
    {"/step/step.css", GetPage, nullptr, kStyle},
    {"/steps.js", GetPage, nullptr, kScript},
    {"/tags.js", GetPage, nullptr, kScript},
    {"/timeline.js", GetPage, nullptr, kScript},
    {"/tip.js", GetPage, nullptr, kScript},
    {"/when.js", GetPage, nullptr, kScript},
    {"/style.css", GetPage, nullptr, kStyle},
    {"/alarms/alarms.css", GetPage, nullptr, kStyle},
    {"/alarms/page.js", GetPage, nullptr, kScript},
    {"/alarms/rule.js", GetPage, nullptr, kScript},
    {"/compare/bands.js", GetPage, nullptr, kScript},
    {"/compare/compare.css", GetPage, nullptr, kStyle},
    {"/compare/diff.js", GetPage, nullptr, kScript},
    {"/compare/diff_chart.js", GetPage, nullptr, kScript},
    {"/compare/many.js", GetPage, nullptr, kScript},
    {"/compare/parts.js", GetPage, nullptr, kScript},
    {"/compare/strip.js", GetPage, nullptr, kScript},
    {"/models/growth.js", GetPage, nullptr, kScript},
    {"/models/models.css", GetPage, nullptr, kStyle},
    {"/models/page.js", GetPage, nullptr, kScript},
    {"/models/periods.js", GetPage, nullptr, kScript},
    {"/explore/bar.js", GetPage, nullptr, kScript},
    {"/explore/combo.js", GetPage, nullptr, kScript},
    {"/explore/explore.css", GetPage, nullptr, kStyle},
    {"/explore/form.js", GetPage, nullptr, kScript},
    {"/explore/graph.js", GetPage, nullptr, kScript},
    {"/explore/lines.js", GetPage, nullptr, kScript},
    {"/explore/names.js", GetPage, nullptr, kScript},
    {"/explore/page.js", GetPage, nullptr, kScript},
    {"/explore/promql.js", GetPage, nullptr, kScript},
    {"/explore/request.js", GetPage, nullptr, kScript},
    {"/explore/results.js", GetPage, nullptr, kScript},
    {"/explore/same.js", GetPage, nullptr, kScript},
    {"/explore/state.js", GetPage, nullptr, kScript},
    {"/explore/texts.js", GetPage, nullptr, kScript},
    {"/tree/cells.js", GetPage, nullptr, kScript},
    {"/tree/model.js", GetPage, nullptr, kScript},
    {"/tree/page.js", GetPage, nullptr, kScript},
    {"/tree/tree.css", GetPage, nullptr, kStyle},
    {"/vendor/uPlot/uPlot.iife.min.js", GetPage, nullptr, kScript},
    {"/vendor/uPlot/uPlot.min.css", GetPage, nullptr, kStyle},
    {"/vendor/uPlot/LICENSE", GetPage, nullptr, kLicense},
};

}  // namespace

std::span<const Route> PageRoutes() { return kRoutes; }

Response PageAt(std::string_view path) {
  const Page* page = FindPage(path);
  if (page == nullptr) return ErrorResponse(404, "there is no such page");
  Response response;
  response.content_type = ContentType(page->name);
  response.body = page->content;
  response.etag = page->etag;
  response.last_modified = BuiltAt();
  response.headers.emplace_back("Content-Security-Policy", kContentPolicy);
  return response;
}

bool IsPage(std::string_view path) {
  return std::any_of(std::begin(kRoutes), std::end(kRoutes),
                     [&](const Route& route) { return route.path == path; });
}

}  // namespace sonde::web
