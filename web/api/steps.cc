// /api/v1/steps: the steps of a job, or those of the archive that filters let through, each in
// short.
#include <string_view>
#include <utility>

#include "core/text/step_title.h"
#include "profiles/json/writer.h"
#include "profiles/report/report.h"
#include "profiles/select/words.h"
#include "web/api/filters.h"
#include "web/api/routes.h"
#include "web/route/waiting.h"

namespace sonde::web {
namespace {

constexpr uint64_t kLimit = 50;
constexpr uint64_t kMostLimit = 1000;
// The first of them are kept in memory until the last is known.
constexpr uint64_t kMostOffset = 1'000'000;

void WriteFigure(const StepInShort& step, JsonWriter& json) {
  json.Key("figure");
  if (step.figure.empty()) {
    json.Raw("null");
    return;
  }
  json.BeginObject().Field("name", step.figure).Field("unit", step.figure_unit);
  json.Field("value", step.figure_value).EndObject();
}

void WriteStep(const StepInShort& step, JsonWriter& json) {
  json.BeginObject().Field("key", step.key);
  json.Field("job", step.id.job).Field("step", step.id.step).Field("name", step.name);
  json.Field("title", StepTitle(step.name, step.command)).Field("command", step.command);
  json.Field("user", step.user).Field("account", step.account);
  json.Field("partition", step.partition).Field("level", step.level);
  json.Field("state", ToString(step.state)).Field("start", step.start).Field("end", step.end);
  json.Field("nodes", step.nodes).Field("tasks", step.tasks);
  json.Key("coverage").BeginObject().Field("expected", step.coverage.expected);
  json.Field("got", step.coverage.got).EndObject();
  WriteFigure(step, json);
  json.Key("tags").BeginObject();
  for (const auto& [name, value] : step.tags) json.Field(name, value);
  json.EndObject().Key("summary").Raw(SummaryToJson(step.summary)).EndObject();
}

void WriteSteps(const std::vector<StepInShort>& steps, JsonWriter& json) {
  json.Key("steps").BeginArray();
  for (const StepInShort& step : steps) WriteStep(step, json);
  json.EndArray();
}

Task<Response> StepsOfJob(const Context& context, const std::string& job) {
  const Result<std::vector<StepInShort>> steps =
      co_await Ask(*context.history, &StepHistory::StepsOf, job, context.clock->Now());
  if (!steps.ok()) co_return ErrorResponse(steps.status());
  Response response;
  JsonWriter json(response.body);
  json.BeginObject().Field("job", job);
  WriteSteps(*steps, json);
  json.EndObject();
  co_return response;
}

Result<Selection> PageOf(const Request& request, Nanos now) {
  Result<Selection> selection = FiltersOf(request, now);
  if (!selection.ok()) return selection;
  if (const std::string* sort = request.Param("sort"); sort != nullptr && !sort->empty()) {
    const Result<SortBy> by = ParseSort(*sort, "parameter ");
    if (!by.ok()) return by.status();
    selection->sort = *by;
  }
  const Result<bool> reverse = FlagParam(request, "reverse");
  if (!reverse.ok()) return reverse.status();
  selection->reverse = *reverse;
  const Result<uint64_t> limit = NumberParam(request, "limit", kLimit, 1, kMostLimit);
  if (!limit.ok()) return limit.status();
  selection->limit = *limit;
  const Result<uint64_t> offset = NumberParam(request, "offset", 0, 0, kMostOffset);
  if (!offset.ok()) return offset.status();
  selection->offset = *offset;
  return selection;
}

Task<Response> GetSteps(const Context& context, const Request& request) {
  const std::string* job = request.Param("job");
  if (job != nullptr && !job->empty()) co_return co_await StepsOfJob(context, *job);
  const Nanos now = context.clock->Now();
  const Result<Selection> selection = PageOf(request, now);
  if (!selection.ok()) co_return ErrorResponse(selection.status());
  const Result<StepPage> page = co_await Ask(*context.history, &StepHistory::List, *selection, now);
  if (!page.ok()) co_return ErrorResponse(page.status());
  Response response;
  JsonWriter json(response.body);
  json.BeginObject();
  WriteSteps(page->steps, json);
  json.Field("found", page->found).Field("offset", selection->offset);
  json.Field("limit", selection->limit).Field("now", now);
  json.Field("one_step", context.history->HasOneStep()).EndObject();
  co_return response;
}

constexpr Route kStepsRoutes[] = {
    {"/api/v1/steps",
     Waits<GetSteps>,
     nullptr,
     {.about =
          "Steps, each in short: those that pass all filters, a page of them in the order that "
          "is asked for. With job, the steps of that job instead, newest first, with those of "
          "its array's tasks, of a het job's components and of every run of a requeued one",
      .params =
          {{"job",
            "the job, such as 4711; of a step, such as 4711.0, its runs. Then nothing else "
            "counts"},
           {"sort", "the newest or largest first, and last what was not measured",
            R"({"type":"string","default":"start","enum":["start","time","cpu","use","mem",)"
            R"("energy","read","written","received","sent","size","nodes","tasks","state"]})"},
           {"reverse", "the oldest or smallest first", kFlag},
           {"limit", "how many at most",
            R"({"type":"integer","minimum":1,"maximum":1000,"default":50})"},
           {"offset", "how many are passed over",
            R"({"type":"integer","minimum":0,"maximum":1000000,"default":0})"}},
      .answer = "#Steps",
      .example = "?search=cavity&sort=time&limit=20",
      .more_params = kFilterParams}}};

}  // namespace

std::span<const Route> StepRoutes() { return kStepsRoutes; }

}  // namespace sonde::web
