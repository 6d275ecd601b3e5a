// /api/v1/diff: compares runs.
#include <algorithm>
#include <string_view>

#include "web/api/routes.h"

namespace sonde::web {
namespace {

constexpr size_t kMaxNames = 200;

// One parameter: each name is a run of its own. Several: each is a group of runs.
Result<std::vector<std::string>> GroupsOf(const Request& request) {
  std::vector<std::string> groups;
  for (const auto& [name, value] : request.params) {
    if (name == "profiles" && !value.empty()) groups.push_back(value);
  }
  if (groups.size() == 1) {
    const std::string all = groups.front();
    groups.clear();
    for (size_t at = 0; at <= all.size() && groups.size() <= kMaxNames;) {
      const size_t end = std::min(all.find(',', at), all.size());
      groups.push_back(all.substr(at, end - at));
      at = end + 1;
    }
  }
  const bool names = std::all_of(groups.begin(), groups.end(),
                                 [](const std::string& group) { return !group.empty(); });
  if (groups.size() >= 2 && groups.size() <= kMaxNames && names) return groups;
  return Status(Code::kInvalid,
                "parameter profiles: expected two runs or more, such as 4711.0,4712.0, or the "
                "parameter once for each group of them");
}

void GetDiff(const Context& context, const Request& request, Reply reply) {
  const auto groups = GroupsOf(request);
  if (!groups.ok()) return reply(ErrorResponse(groups.status()));
  const std::string* align = request.Param("align");
  context.history->Compare(
      *groups, align == nullptr ? "start" : *align,
      [reply](const Result<std::string>& compared) { reply(JsonResponse(compared)); });
}

constexpr RouteParam kProfiles = {
    "profiles",
    "two runs or more between commas: steps, or the keys of profiles. Given several times, each is "
    "a group of runs. All are compared with the first",
    kText, true};
constexpr RouteParam kAlign = {"align", "start, or phase:NAME: where the first NAME began"};

constexpr Route kDiffRoutes[] = {
    {"/api/v1/diff",
     GetDiff,
     nullptr,
     {.about = "Runs beside each other: what differs beyond noise, and "
               "their series on one axis",
      .params = {kProfiles, kAlign},
      .answer = "#Difference",
      .example = "?profiles=4711.0,4710.0"}}};

}  // namespace

std::span<const Route> DiffRoutes() { return kDiffRoutes; }

}  // namespace sonde::web
