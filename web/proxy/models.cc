// /profiles/extrap, /model/download, /queue/model: the runs of a command as Extra-P reads them;
// /model/get, /model/plot: models of them.
//
// One line of JSON for each metric and run: {"params": {"size": TASKS}, "metric": KIND, "callpath":
// METRIC, "value": VALUE}, the form of Extra-P's JSON lines and of metric-proxy. KIND is "hits",
// "time" or "size" for metrics of metric-proxy's preloaded libraries, such as
// mpi___time___MPI_Send, whose call path is then mpi->time->MPI_Send; else "various". Only
// completed runs count, and only metrics that all of them have.
#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "insight/scaling/model.h"
#include "profiles/json/writer.h"
#include "web/http/json_input.h"
#include "web/proxy/queue.h"
#include "web/proxy/routes.h"
#include "web/proxy/runs.h"
#include "web/route/waiting.h"

namespace sonde::web {
namespace {

constexpr std::string_view kLevel = "___";  // between the levels of a call path

std::string CallPathOf(std::string_view metric) {
  std::string path;
  for (size_t at; (at = metric.find(kLevel)) != std::string_view::npos;) {
    path += std::string(metric.substr(0, at)) + "->";
    metric.remove_prefix(at + kLevel.size());
  }
  return path += metric;
}

std::string_view KindOf(std::string_view metric) {
  constexpr std::string_view kOther = "various";
  const size_t first = metric.find(kLevel);
  if (first == std::string_view::npos) return kOther;
  const std::string_view rest = metric.substr(first + kLevel.size());
  const size_t second = rest.find(kLevel);
  if (second == std::string_view::npos) return kOther;
  const std::string_view kind = rest.substr(0, second);
  return kind == "hits" || kind == "time" || kind == "size" ? kind : kOther;
}

// Of one that has completed at least once.
Task<Result<Runs>> CompletedRuns(const Context& context, const Request& request,
                                 std::string command) {
  Result<Runs> runs = co_await RunsOf(context, request, command, RunEnd::kCompleted);
  if (runs.ok() && runs->count == 0) {
    co_return Status(Code::kNotFound, fmt::format("no run of '{}' has completed yet", command));
  }
  co_return runs;
}

Task<Result<Runs>> CompletedRunsOfStep(const Context& context, const Request& request,
                                       std::string jobid) {
  const Result<Profile> asked =
      co_await Ask(*context.history, &StepHistory::GetProfile, JobStep::Parse(jobid));
  if (!asked.ok()) co_return asked.status();
  co_return co_await CompletedRuns(context, request, asked->job.command);
}

Response Lines(const Runs& runs) {
  Response response;
  response.content_type = "text/plain; charset=utf-8";
  for (const auto& [metric, points] : runs.points) {
    if (points.size() != runs.count) continue;
    for (const auto& [tasks, value] : points) {
      JsonWriter json(response.body);
      json.BeginObject().Key("params").BeginObject().Field("size", tasks).EndObject();
      json.Field("metric", KindOf(metric)).Field("callpath", CallPathOf(metric));
      json.Field("value", value).EndObject();
      response.body += '\n';
    }
  }
  return response;
}

Task<Response> GetLines(const Context& context, const Request& request) {
  const Result<std::string> step = AskedStep(request);
  if (!step.ok()) co_return ErrorResponse(step.status());
  const Result<Runs> runs = co_await CompletedRunsOfStep(context, request, *step);
  co_return runs.ok() ? Lines(*runs) : ErrorResponse(runs.status());
}

// The command of a job in the queue is known as squeue knows it: of a batch job the script's path.
Task<Response> GetOfQueued(const Context& context, const Request& request) {
  const std::string* job = request.Param("job");
  if (job == nullptr || job->empty()) {
    co_return ErrorResponse(
        {Code::kInvalid, "parameter job is missing: a job in the queue, such as 4711"});
  }
  const Result<std::string> command = QueuedCommand(*job);
  if (!command.ok()) co_return ErrorResponse(command.status());
  const Result<Runs> runs = co_await CompletedRuns(context, request, *command);
  co_return runs.ok() ? Lines(*runs) : ErrorResponse(runs.status());
}

// --- Models ---

constexpr std::string_view kParameter = "size";  // the number of tasks
constexpr size_t kMaxPlotted = 100'000;

std::vector<insight::ScalePoint> PointsOf(const std::vector<std::pair<uint32_t, double>>& runs) {
  std::vector<insight::ScalePoint> points;
  points.reserve(runs.size());
  for (const auto& [tasks, value] : runs) points.push_back({std::max<double>(tasks, 1), value});
  return points;
}

// [[metric, equation, residual sum of squares], ...]
Task<Response> GetModels(const Context& context, const Request& request) {
  const Result<std::string> step = AskedStep(request);
  if (!step.ok()) co_return ErrorResponse(step.status());
  const Result<Runs> runs = co_await CompletedRunsOfStep(context, request, *step);
  if (!runs.ok()) co_return ErrorResponse(runs.status());
  Response response;
  JsonWriter json(response.body);
  json.BeginArray();
  for (const auto& [metric, points] : runs->points) {
    if (points.size() != runs->count) continue;
    const Result<insight::ScalingModel> model = insight::FitScaling(PointsOf(points));
    if (!model.ok()) continue;
    json.BeginArray().Value(metric).Value(model->Text(kParameter)).Value(model->rss).EndArray();
  }
  json.EndArray();
  co_return response;
}

struct AskedPlot {
  std::string job, metric;
  double start = 0, end = 0, step = 1;
};

Result<double> NumberOf(const Request& request, std::string_view name, double fallback) {
  const std::string* text = request.Param(name);
  if (text == nullptr || text->empty()) return fallback;
  double value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error == std::errc() && end == text->data() + text->size() && std::isfinite(value)) {
    return value;
  }
  return Wrong(name, "a number");
}

Status ReadPlotField(const boost::json::value& value, std::string_view name, AskedPlot& plot) {
  if (name == "jobid") return ReadText(value, name, plot.job);
  if (name == "metric") return ReadText(value, name, plot.metric);
  if (name == "start") return ReadNumber(value, name, plot.start);
  if (name == "end") return ReadNumber(value, name, plot.end);
  if (name == "step") return ReadNumber(value, name, plot.step);
  return NoSuchField(name, "jobid, metric, start, end or step");
}

Result<AskedPlot> PostedPlot(const Request& request) {
  return WithObject<AskedPlot>(request.body,
                               [](const boost::json::object& object) -> Result<AskedPlot> {
                                 AskedPlot plot;
                                 for (const auto& [name, value] : object) {
                                   SONDE_RETURN_IF_ERROR(ReadPlotField(value, View(name), plot));
                                 }
                                 return plot;
                               });
}

Result<AskedPlot> AskedPlotOf(const Request& request) {
  if (request.method == Method::kPost) return PostedPlot(request);
  AskedPlot plot;
  if (const std::string* job = request.Param("jobid")) plot.job = *job;
  if (const std::string* metric = request.Param("metric")) plot.metric = *metric;
  for (const auto& [name, number] :
       {std::pair("start", &plot.start), {"end", &plot.end}, {"step", &plot.step}}) {
    const Result<double> value = NumberOf(request, name, *number);
    if (!value.ok()) return value.status();
    *number = *value;
  }
  return plot;
}

Status CheckRange(const AskedPlot& plot) {
  if (!(plot.start >= 1) || !(plot.end >= plot.start) || !(plot.step > 0)) {
    return {Code::kInvalid, "expected start of 1 or more, end not before it, and step above 0"};
  }
  if ((plot.end - plot.start) / plot.step >= kMaxPlotted) {
    return {Code::kLimit, fmt::format("more than {} points", kMaxPlotted)};
  }
  return {};
}

// [[size, value], ...] of a metric's model, from start to end.
Task<Response> GetPlotted(const Context& context, const Request& request) {
  const Result<AskedPlot> plot = AskedPlotOf(request);
  if (!plot.ok()) co_return ErrorResponse(plot.status());
  if (const Status range = CheckRange(*plot); !range.ok()) co_return ErrorResponse(range);
  const Result<Runs> runs = co_await CompletedRunsOfStep(context, request, plot->job);
  if (!runs.ok()) co_return ErrorResponse(runs.status());
  const auto points = runs->points.find(plot->metric);
  if (points == runs->points.end() || points->second.size() != runs->count) {
    co_return ErrorResponse({Code::kNotFound, "No model for metric " + plot->metric});
  }
  const Result<insight::ScalingModel> model = insight::FitScaling(PointsOf(points->second));
  if (!model.ok()) co_return ErrorResponse(model.status());
  Response response;
  JsonWriter json(response.body);
  json.BeginArray();
  const auto steps = static_cast<size_t>((plot->end - plot->start) / plot->step);
  for (size_t i = 0; i <= steps; ++i) {
    const double size = plot->start + static_cast<double>(i) * plot->step;
    json.BeginArray().Value(size).Value(model->At(size)).EndArray();
  }
  json.EndArray();
  co_return response;
}

constexpr std::string_view kLines = "text/plain";
constexpr RouteDoc kExtraP = {
    .about = "The metrics of a step's command over its completed runs, as Extra-P's JSON lines",
    .params = {kStepOfCommand, kLookedThrough, kRunsRead},
    .answer = kLines,
    .example = "?jobid=4711.0"};

constexpr Route kModelRoutes[] = {
    {"/profiles/extrap", Waits<GetLines>, nullptr, kExtraP},
    {"/model/download", Waits<GetLines>, nullptr, kExtraP},
    {"/model/get",
     Waits<GetModels>,
     nullptr,
     {.about = "How each metric of a step's command grows with the number of tasks, over its "
               "completed runs: metric, equation in `size`, residual sum of squares",
      .params = {kStepOfCommand, kLookedThrough, kRunsRead},
      .answer = R"({"type":"array","items":{"type":"array","prefixItems":[{"type":"string"},)"
                R"({"type":"string"},{"type":"number"}],"items":false}})",
      .example = "?jobid=4711.0"}},
    {"/model/plot",
     Waits<GetPlotted>,
     Waits<GetPlotted>,
     {.about = "The model of one metric for several sizes: pairs of size and value",
      .params = {kStepOfCommand,
                 {"metric", "as /model/get has it", kText, true},
                 {"start", "the first number of tasks", R"({"type":"number"})", true},
                 {"end", "and the last", R"({"type":"number"})", true},
                 {"step", "between two; 1 if absent", R"({"type":"number"})"},
                 kLookedThrough,
                 kRunsRead},
      .answer = "[#Pair]",
      .body = R"({"type":"object","required":["jobid","metric","start","end"],"properties":{)"
              R"("jobid":{"type":"string"},"metric":{"type":"string"},"start":{"type":"number"},)"
              R"("end":{"type":"number"},"step":{"type":"number"}}})",
      .example = "?jobid=4711.0&metric=walltime&start=1&end=16",
      .example_body =
          R"({"jobid": "4711.0", "metric": "walltime", "start": 1, "end": 16, "step": 1})"}},
    {"/queue/model",
     Waits<GetOfQueued>,
     nullptr,
     {.about = "The same of the command of a job in Slurm's queue",
      .params = {{"job", "the job, such as 4714", kText, true}, kLookedThrough, kRunsRead},
      .answer = kLines,
      .example = "?job=4714"}}};

}  // namespace

std::span<const Route> ModelRoutes() { return kModelRoutes; }

}  // namespace sonde::web
