// /api/v1/runs: how the numbers of many runs spread; /api/v1/runs/series: their series as bands.
#include <utility>

#include "profiles/compare/run_bands.h"
#include "web/api/filters.h"
#include "web/api/parts.h"
#include "web/api/routes.h"
#include "web/route/waiting.h"

namespace sonde::web {
namespace {

Result<ManyRunsQuestion> RunsQuestionOf(const Context& context, const Request& request) {
  ManyRunsQuestion question;
  auto names = PartsOf(request, "profiles", kMostManyRuns);
  if (!names.ok()) return names.status();
  question.names = *std::move(names);
  auto selection = FiltersOf(request, context.clock->Now());
  if (!selection.ok()) return selection.status();
  if (!question.names.empty() && HasFilters(*selection)) {
    return Status(Code::kInvalid, "parameter profiles names runs: filters cannot be set besides");
  }
  question.selection = *std::move(selection);
  return question;
}

Task<Response> GetRuns(const Context& context, const Request& request) {
  const Result<ManyRunsQuestion> question = RunsQuestionOf(context, request);
  if (!question.ok()) co_return ErrorResponse(question.status());
  co_return JsonResponse(co_await Ask(*context.history, &StepHistory::CompareMany, *question));
}

Task<Response> GetRunSeries(const Context& context, const Request& request) {
  const Result<ManyRunsQuestion> question = RunsQuestionOf(context, request);
  if (!question.ok()) co_return ErrorResponse(question.status());
  const auto metrics = PartsOf(request, "metric", kMostBandMetrics);
  if (!metrics.ok()) co_return ErrorResponse(metrics.status());
  if (metrics->empty()) {
    co_return ErrorResponse({Code::kInvalid, "parameter metric is missing: one or several"});
  }
  const std::string* text = request.Param("axis");
  const auto axis = ParseBandAxis(text == nullptr || text->empty() ? "time" : *text);
  if (!axis.ok()) co_return ErrorResponse(axis.status().Within("parameter axis"));
  co_return JsonResponse(
      co_await Ask(*context.history, &StepHistory::Bands, *question, *metrics, *axis));
}

constexpr RouteParam kNamed = {
    "profiles",
    "the runs between commas, steps or the keys of profiles; without it all that pass the filters "
    "and have ended"};

constexpr Route kRunRoutes[] = {
    {"/api/v1/runs",
     Waits<GetRuns>,
     nullptr,
     {.about = "How the numbers of 2 to 500 runs that have ended spread, and which runs stand out. "
               "More than 500 are an error 400",
      .params = {kNamed},
      .answer = "#Runs",
      .example = "?profiles=4711.0,4710.0",
      .more_params = kFilterParams}},
    {"/api/v1/runs/series",
     Waits<GetRunSeries>,
     nullptr,
     {.about = "Series of these runs as bands: at each moment the median of the runs, the middle "
               "80 % of them, the least and the greatest",
      .params = {kNamed,
                 {"metric", "up to 16 metrics between commas", kText, true},
                 {"axis", "moments are seconds since the start, or shares of each run",
                  R"({"type":"string","default":"time","enum":["time","share"]})"}},
      .answer = "#RunBands",
      .example = "?profiles=4711.0,4710.0&metric=node_load1&axis=share",
      .more_params = kFilterParams}}};

}  // namespace

std::span<const Route> ManyRunRoutes() { return kRunRoutes; }

}  // namespace sonde::web
