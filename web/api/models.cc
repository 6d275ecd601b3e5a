// /api/v1/models: how the numbers of runs grow with their size.
#include <utility>

#include "web/api/parts.h"
#include "web/api/routes.h"
#include "web/route/waiting.h"

namespace sonde::web {
namespace {

constexpr size_t kMostModelled = 1000;  // runs
constexpr size_t kMostTexts = 32;

Result<ModelsQuestion> ModelsQuestionOf(const Request& request) {
  ModelsQuestion question;
  auto runs = PartsOf(request, "runs", kMostModelled);
  if (!runs.ok()) return runs.status();
  if (runs->empty()) {
    return Status(Code::kInvalid,
                  "parameter runs is missing: a text in the command line or name of the runs, or "
                  "steps and jobs, as in 4711,4712.0");
  }
  question.runs = *std::move(runs);
  auto metrics = PartsOf(request, "metric", kMostTexts);
  if (!metrics.ok()) return metrics.status();
  question.metrics = *std::move(metrics);
  const Result<uint64_t> last = NumberParam(request, "last", question.last, 1, kMostModelled);
  if (!last.ok()) return last.status();
  question.last = *last;
  if (const std::string* by = request.Param("by")) question.by = *by;
  const Result<bool> all = FlagParam(request, "all");
  if (!all.ok()) return all.status();
  question.all = *all;
  return question;
}

Task<Response> GetRunModels(const Context& context, const Request& request) {
  const Result<ModelsQuestion> question = ModelsQuestionOf(request);
  if (!question.ok()) co_return ErrorResponse(question.status());
  co_return JsonResponse(co_await Ask(*context.history, &StepHistory::Models, *question));
}

constexpr Route kModelRoutes[] = {
    {"/api/v1/models",
     Waits<GetRunModels>,
     nullptr,
     {.about = "How the numbers of runs grow with their size, as sonde model --json: those that "
               "grow most first",
      .params =
          {{"runs",
            "a text in the command line or name of the runs, or steps and jobs between commas",
            kText, true},
           {"by",
            "what the runs differ in: nodes, tasks, threads or tag:KEY, or two between a "
            "comma; nodes, or tasks if all have as many nodes"},
           {"metric", "texts between commas: numbers whose names have one of them"},
           {"all", "the whole footprint, too", kFlag},
           {"last", "how many runs of the text, the newest ones",
            R"({"type":"integer","minimum":1,"maximum":1000,"default":200})"}},
      .answer = "#Models",
      .example = "?runs=cavity&by=nodes"}}};

}  // namespace

std::span<const Route> RunModelRoutes() { return kModelRoutes; }

}  // namespace sonde::web
