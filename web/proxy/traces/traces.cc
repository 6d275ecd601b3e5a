// /trace/metrics, /trace/read, /trace/plot, /trace/json: the reduced series of a step over time, in
// the shapes of metric-proxy; and those of "main", all running steps together.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "profiles/json/writer.h"
#include "web/http/json_input.h"
#include "web/proxy/snapshot.h"
#include "web/proxy/traces/routes.h"
#include "web/proxy/traces/trace_query.h"
#include "web/proxy/traces/traced.h"
#include "web/route/gather.h"
#include "web/route/waiting.h"

namespace sonde::web {
namespace {

constexpr size_t kMaxAllPoints = 1'000'000;  // of a whole trace

void WriteLine(const TraceLine& line, Nanos offset, JsonWriter& json) {
  json.BeginArray();
  for (const auto& [time, value] : line) {
    json.BeginArray().Value(InSeconds(time - offset)).Value(value).EndArray();
  }
  json.EndArray();
}

// --- /trace/metrics ---

Task<Response> GetMetrics(const Context& context, const Request& request) {
  const Result<std::shared_ptr<AskedTrace>> asked =
      co_await AskForTrace(context, request, request.Param("job"), nullptr);
  if (!asked.ok()) co_return ErrorResponse(asked.status());
  Response response;
  JsonWriter json(response.body);
  json.BeginArray();
  for (const FootprintEntry& entry : (*asked)->profile.footprint) {
    json.Value(SeriesName(entry.series.metric.name, entry.series.tags));
  }
  json.EndArray();
  co_return response;
}

// --- /trace/read ---

// [[time, {"Gauge": {...}}], ...]: hits is 1, so that total is the step's number.
void WriteGauges(const Answers& answers, JsonWriter& json) {
  std::map<Nanos, std::array<double, 3>> points;  // number, min, max
  for (size_t i = 0; i < 3; ++i) {
    for (const auto& [time, value] : FirstLine(answers[i])) {
      constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
      points.try_emplace(time, std::array<double, 3>{kNone, kNone, kNone}).first->second[i] = value;
    }
  }
  for (const auto& [time, values] : points) {
    json.BeginArray().Value(InSeconds(time)).BeginObject().Key("Gauge").BeginObject();
    json.Field("min", values[1]).Field("max", values[2]).Field("hits", 1);
    json.Field("total", values[0]).EndObject().EndObject().EndArray();
  }
}

void WriteCounters(const Answers& answers, JsonWriter& json) {
  for (const auto& [time, value] : FirstLine(answers[0])) {
    json.BeginArray().Value(InSeconds(time));
    WriteCounter(time, value, json);
    json.EndArray();
  }
}

Response ReadResponse(const AskedTrace& asked, const Answers& answers, Nanos now) {
  Response response;
  JsonWriter json(response.body);
  json.BeginObject().Key("info");
  WriteTraceInfo(asked.profile, now, json);
  json.Key("time_serie").BeginArray();
  if (answers.size() == 3) WriteGauges(answers, json);
  if (answers.size() == 1) WriteCounters(answers, json);
  json.EndArray().EndObject();
  return response;
}

Task<Response> GetRead(const Context& context, const Request& request) {
  const Result<std::shared_ptr<AskedTrace>> made =
      co_await AskForTrace(context, request, request.Param("job"), request.Param("filter"));
  if (!made.ok()) co_return ErrorResponse(made.status());
  const std::shared_ptr<const AskedTrace> asked = *made;
  const Nanos now = context.clock->Now();
  if (asked->series == nullptr) co_return ReadResponse(*asked, {}, now);
  const Metric& metric = asked->series->series.metric;
  std::vector<QuerySpec> specs = {TraceSpecOf(*asked, *asked->series, TraceAggregatorOf(metric))};
  if (!IsCounting(metric.type)) {
    specs.push_back(TraceSpecOf(*asked, *asked->series, Aggregator::kMin));
    specs.push_back(TraceSpecOf(*asked, *asked->series, Aggregator::kMax));
  }
  const Result<Answers> answers = co_await Gather(context, std::move(specs));
  if (!answers.ok()) co_return ErrorResponse(answers.status());
  co_return ReadResponse(*asked, *answers, now);
}

// --- /trace/plot ---

struct Plot {
  std::string job, filter;
  bool derivate = false;
};

Result<Plot> PlotOf(const Request& request) {
  if (request.method == Method::kPost) {
    return WithObject<Plot>(request.body, [](const boost::json::object& object) -> Result<Plot> {
      Plot plot;
      for (const auto& [name, value] : object) {
        Status read = NoSuchField(View(name), "jobid, filter or derivate");
        if (View(name) == "jobid") read = ReadText(value, "jobid", plot.job);
        if (View(name) == "filter") read = ReadText(value, "filter", plot.filter);
        if (View(name) == "derivate") read = ReadBool(value, "derivate", plot.derivate);
        if (!read.ok()) return read;
      }
      return plot;
    });
  }
  Plot plot;
  if (const std::string* job = request.Param("jobid")) plot.job = *job;
  if (const std::string* filter = request.Param("filter")) plot.filter = *filter;
  if (const std::string* derivate = request.Param("derivate")) {
    plot.derivate = *derivate == "true" || *derivate == "1";
    if (!plot.derivate && *derivate != "false" && *derivate != "0") {
      return Status(Code::kInvalid, "derivate: expected true or false");
    }
  }
  return plot;
}

Task<Response> GetPlot(const Context& context, const Request& request) {
  const Result<Plot> plot = PlotOf(request);
  if (!plot.ok()) co_return ErrorResponse(plot.status());
  if (plot->filter.empty()) {
    co_return ErrorResponse({Code::kInvalid, "No filter GET parameter passed: a metric's name"});
  }
  const Result<std::shared_ptr<AskedTrace>> made =
      co_await AskForTrace(context, request, &plot->job, &plot->filter);
  if (!made.ok()) co_return ErrorResponse(made.status());
  const std::shared_ptr<const AskedTrace> asked = *made;
  const Result<TraceLine> line = co_await LineOfTrace(context, asked, plot->derivate);
  if (!line.ok()) co_return ErrorResponse(line.status());
  Response response;
  JsonWriter json(response.body);
  WriteLine(*line, 0, json);
  co_return response;
}

// --- /trace/json ---

// One query for each metric, whose series are the groups; after these, the queries for rates.
std::vector<QuerySpec> AllSpecs(const AskedTrace& asked) {
  std::map<std::string_view, std::set<std::string>> keys;
  std::map<std::string_view, const Metric*> metrics;
  for (const FootprintEntry& entry : asked.profile.footprint) {
    metrics[entry.series.metric.name] = &entry.series.metric;
    for (const auto& [key, value] : entry.series.tags.pairs()) {
      keys[entry.series.metric.name].insert(key);
    }
  }
  std::vector<QuerySpec> specs;
  for (const auto& [name, metric] : metrics) {
    QuerySpec& spec = specs.emplace_back(TraceSpecOf(asked, *metric, TraceAggregatorOf(*metric)));
    for (const std::string& key : keys[name]) {
      spec.filters.push_back({TagFilter::Type::kWildcard, key, "*", true});
    }
  }
  size_t at = 0;
  for (const auto& [name, metric] : metrics) {
    const QuerySpec& spec = specs[at++];
    if (AsksForRates(spec, *metric)) specs.push_back(RatesOf(spec));
  }
  return specs;
}

// By their names; of the wanted series.
std::map<std::string, TraceLine> LinesOf(std::span<const Answer> answers,
                                         const std::set<std::string>& wanted) {
  std::map<std::string, TraceLine> lines;
  for (const Answer& answer : answers) {
    for (const QueryResult& result : answer.results) {
      Tags tags = result.tags;
      for (const char* key : {"job", "host", "task"}) tags.Erase(key);
      std::string name = SeriesName(result.metric, tags);
      TraceLine line = TraceLineOf(result.points);
      if (!line.empty() && wanted.contains(name)) lines.emplace(std::move(name), std::move(line));
    }
  }
  return lines;
}

// `metrics`: how many of the answers are values; the rest are rates.
Response JsonResponse(const AskedTrace& asked, const Answers& answers, size_t metrics, Nanos now) {
  std::set<std::string> wanted;
  for (const FootprintEntry& entry : asked.profile.footprint) {
    wanted.insert(SeriesName(entry.series.metric.name, entry.series.tags));
  }
  const std::span<const Answer> all(answers);
  const std::map<std::string, TraceLine> lines = LinesOf(all.first(metrics), wanted);
  const std::map<std::string, TraceLine> rates = LinesOf(all.subspan(metrics), wanted);
  Nanos offset = std::numeric_limits<Nanos>::max();
  for (const auto& [name, line] : lines) offset = std::min(offset, line.front().time);
  Response response;
  JsonWriter json(response.body);
  json.BeginObject().Key("infos");
  WriteTraceInfo(asked.profile, now, json);
  json.Key("metrics").BeginObject();
  for (const auto& [name, line] : lines) {
    json.Key(name);
    WriteLine(line, offset, json);
    json.Key("deriv__" + name);
    const auto rate = rates.find(name);
    WriteLine(rate == rates.end() ? Derived(line) : FromRates(line, rate->second), offset, json);
  }
  json.EndObject().EndObject();
  return response;
}

Task<Response> GetJson(const Context& context, const Request& request) {
  const Result<std::shared_ptr<AskedTrace>> made =
      co_await AskForTrace(context, request, request.Param("jobid"), nullptr);
  if (!made.ok()) co_return ErrorResponse(made.status());
  const std::shared_ptr<AskedTrace>& asked = *made;
  const Nanos now = context.clock->Now();
  const size_t series = std::max<size_t>(asked->profile.footprint.size(), 1);
  asked->interval = 0;
  const Result<uint64_t> points =
      NumberParam(request, "points", kDefaultTracePoints, 2, kMaxTracePoints);
  SetTraceRange(std::clamp<uint64_t>(kMaxAllPoints / series, 2, *points), now, *asked);
  std::vector<QuerySpec> specs = AllSpecs(*asked);
  if (specs.empty()) co_return JsonResponse(*asked, {}, 0, now);
  const auto metrics = static_cast<size_t>(
      std::count_if(specs.begin(), specs.end(), [](const QuerySpec& spec) { return !spec.rate; }));
  const Result<Answers> answers = co_await Gather(context, std::move(specs));
  if (!answers.ok()) co_return ErrorResponse(answers.status());
  co_return JsonResponse(*asked, *answers, metrics, now);
}

constexpr RouteParam kPoints = {"points", "how many at most, 2 to 100000; 10000 if absent", kCount};
constexpr RouteParam kOfJob = {"job", "the step, such as 4711.0, or main", kText, true};
constexpr RouteParam kOfId = {"jobid", "the step, such as 4711.0, or main", kText, true};
constexpr RouteParam kFilter = {"filter", "the metric, as /trace/metrics lists it"};

constexpr Route kTracesRoutes[] = {
    {"/trace/metrics",
     Waits<GetMetrics>,
     nullptr,
     {.about = "The metrics of a step",
      .params = {kOfJob},
      .answer = R"({"type":"array","items":{"type":"string"}})",
      .example = "?job=4711.0"}},
    {"/trace/read",
     Waits<GetRead>,
     nullptr,
     {.about = "One metric of a step over time, with its extremes",
      .params = {kOfJob, kFilter, kPoints},
      .answer = R"({"type":"object","required":["info","time_serie"],"properties":{"info":)"
                R"({"$ref":"#/components/schemas/Trace"},"time_serie":{"type":"array","items":)"
                R"({"type":"array","prefixItems":[{"type":"number"},)"
                R"({"$ref":"#/components/schemas/TraceValue"}],"items":false}}}})",
      .example = "?job=4711.0&filter=node_load1&points=20"}},
    {"/trace/plot",
     Waits<GetPlot>,
     Waits<GetPlot>,
     {.about = "One metric of a step over time: pairs of time in s and value",
      .params = {kOfId, kFilter, {"derivate", "its change per second", kFlag}, kPoints},
      .answer = "[#Pair]",
      .body = R"({"type":"object","required":["jobid","filter"],"properties":{"jobid":)"
              R"({"type":"string"},"filter":{"type":"string"},"derivate":{"type":"boolean"}}})",
      .example = "?jobid=4711.0&filter=node_load1&points=20",
      .example_body = R"({"jobid": "4711.0", "filter": "node_load1", "derivate": true})"}},
    {"/trace/json",
     Waits<GetJson>,
     nullptr,
     {.about = "Every metric of a step over time since the first point, and its change per second",
      .params = {kOfId, kPoints},
      .answer = R"({"type":"object","required":["infos","metrics"],"properties":{"infos":)"
                R"({"$ref":"#/components/schemas/Trace"},"metrics":{"type":"object",)"
                R"("additionalProperties":{"type":"array",)"
                R"("items":{"$ref":"#/components/schemas/Pair"}}}}})",
      .example = "?jobid=4711.0&points=20"}}};

}  // namespace

std::span<const Route> TraceRoutes() { return kTracesRoutes; }

}  // namespace sonde::web
