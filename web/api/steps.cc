// /api/v1/steps: the steps of a job, each in short.
#include "profiles/json/writer.h"
#include "profiles/report/report.h"
#include "web/api/routes.h"
#include "web/route/waiting.h"

namespace sonde::web {
namespace {

void WriteStep(const StepInShort& step, JsonWriter& json) {
  json.BeginObject().Field("key", step.key);
  json.Field("job", step.id.job).Field("step", step.id.step).Field("name", step.name);
  json.Field("state", ToString(step.state)).Field("start", step.start).Field("end", step.end);
  json.Field("nodes", step.nodes).Field("tasks", step.tasks);
  json.Key("tags").BeginObject();
  for (const auto& [name, value] : step.tags) json.Field(name, value);
  json.EndObject().Key("summary").Raw(SummaryToJson(step.summary)).EndObject();
}

Task<Response> GetSteps(const Context& context, const Request& request) {
  const std::string* job = request.Param("job");
  if (job == nullptr || job->empty()) {
    co_return ErrorResponse(400, "parameter job is missing: the job, such as 4711");
  }
  const Result<std::vector<StepInShort>> steps =
      co_await Ask(*context.history, &StepHistory::StepsOf, *job, context.clock->Now());
  if (!steps.ok()) co_return ErrorResponse(steps.status());
  Response response;
  JsonWriter json(response.body);
  json.BeginObject().Field("job", *job).Key("steps").BeginArray();
  for (const StepInShort& step : *steps) WriteStep(step, json);
  json.EndArray().EndObject();
  co_return response;
}

constexpr Route kStepsRoutes[] = {
    {"/api/v1/steps",
     Waits<GetSteps>,
     nullptr,
     {.about = "The steps of a job, newest first, with those of its array's tasks, of a het job's "
               "components and of every run of a requeued one",
      .params = {{"job", "the job, such as 4711; of a step, such as 4711.0, its runs", kText,
                  true}},
      .answer = "#Steps",
      .example = "?job=4711"}}};

}  // namespace

std::span<const Route> StepRoutes() { return kStepsRoutes; }

}  // namespace sonde::web
