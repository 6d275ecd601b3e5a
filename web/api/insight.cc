// /api/v1/insight: what follows from the numbers of a finished step.
#include <algorithm>
#include <array>
#include <string_view>

#include "web/api/routes.h"

namespace sonde::web {
namespace {

constexpr std::array<std::string_view, 7> kKinds = {"hints",   "budget",   "phases", "stragglers",
                                                    "periods", "roofline", "energy"};

void GetInsight(const Context& context, const Request& request, Reply reply) {
  const std::string* job = request.Param("job");
  if (job == nullptr) {
    return reply(ErrorResponse(
        {Code::kInvalid, "parameter job is missing: the job and step, such as 4711.0"}));
  }
  const std::string* asked = request.Param("of");
  const std::string of = asked == nullptr || asked->empty() ? "hints" : *asked;
  if (std::find(kKinds.begin(), kKinds.end(), of) == kKinds.end()) {
    return reply(ErrorResponse(
        {Code::kInvalid,
         "parameter of: expected hints, budget, phases, stragglers, periods, roofline or energy, "
         "not '" +
             of + "'"}));
  }
  context.history->Conclude(
      JobStep::Parse(*job), of,
      [reply](const Result<std::string>& concluded) { reply(JsonResponse(concluded)); });
}

constexpr Route kInsightRoutes[] = {
    {"/api/v1/insight",
     GetInsight,
     nullptr,
     {.about = "What follows from the numbers of a step that has ended",
      .params = {{"job", "the step, such as 4711.0", kText, true},
                 {"of",
                  "hints (the default): what to change; budget: for what its tasks spent "
                  "time; phases; stragglers; periods; roofline: how fast it could be; energy"}},
      .answer = "#Insight",
      .example = "?job=4711.0&of=hints"}}};

}  // namespace

std::span<const Route> InsightRoutes() { return kInsightRoutes; }

}  // namespace sonde::web
