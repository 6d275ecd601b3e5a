// /trace/list, /trace/metrics, /trace/read, /trace/plot, /trace/json: the reduced series of a step
// over time, in the shapes of metric-proxy.
//
// A point is the step's number by the metric's reduction. A step of more points than are asked for
// is downsampled: gauges to their mean, counters to their last value.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <set>

#include "profiles/json/writer.h"
#include "web/http/json_input.h"
#include "web/proxy/routes.h"
#include "web/proxy/snapshot.h"
#include "web/route/gather.h"
#include "web/route/waiting.h"
#include "web/source/running_step.h"

namespace sonde::web {
namespace {

constexpr uint64_t kDefaultTraces = 100;  // each is read from the archive as a whole
constexpr uint64_t kMaxTraces = 1000;
constexpr uint64_t kDefaultPoints = 10'000;
constexpr uint64_t kMaxPoints = 100'000;
constexpr size_t kMaxAllPoints = 1'000'000;  // of a whole trace

struct Asked {
  Profile profile;
  std::string metric;            // as SeriesName writes it; "": none
  const FootprintEntry* series;  // of the profile; nullptr: none
  Nanos start = 0;
  Nanos end = 0;
  Nanos interval = 0;  // 0: as measured
};

// Whole counters are written without a fraction, so that they come back the same.
void WriteInfo(const Profile& profile, Nanos now, JsonWriter& json) {
  const Nanos last = profile.job.end != 0 ? profile.job.end : now;
  json.BeginObject().Key("desc");
  WriteDescription(profile.job, json);
  json.Field("size", static_cast<uint64_t>(std::max(profile.cost.stored_bytes, 0.0)));
  json.Field("lastwrite", last / kSecond).EndObject();
}

// The interval that follows from the step's range and the number of points.
void SetRange(uint64_t points, Nanos now, Asked& asked) {
  const JobDescription& job = asked.profile.job;
  const Nanos period = std::max(job.period, kMinPeriod);
  asked.start = job.start;
  asked.end = std::max((job.end != 0 ? job.end : now) + period, job.start + period);
  const Nanos wanted = (asked.end - asked.start) / static_cast<Nanos>(points);
  if (wanted <= period) return;
  asked.interval = (wanted + period - 1) / period * period;
  asked.start -= asked.start % asked.interval;  // a bucket that starts before would be dropped
}

Task<Result<std::shared_ptr<Asked>>> AskFor(const Context& context, const Request& request,
                                            const std::string* job, const std::string* filter) {
  if (job == nullptr || job->empty()) {
    co_return Status(Code::kInvalid, "No job GET parameter passed: the job and step, as 4711.0");
  }
  const Result<uint64_t> points = NumberParam(request, "points", kDefaultPoints, 2, kMaxPoints);
  if (!points.ok()) co_return points.status();
  Result<Profile> profile =
      co_await Ask(*context.history, &StepHistory::GetProfile, JobStep::Parse(*job));
  if (!profile.ok()) co_return profile.status();
  const auto asked = std::make_shared<Asked>();
  asked->profile = *std::move(profile);
  asked->series = nullptr;
  if (filter != nullptr) asked->metric = *filter;
  for (const FootprintEntry& entry : asked->profile.footprint) {
    if (SeriesName(entry.series.metric.name, entry.series.tags) == asked->metric) {
      asked->series = &entry;
    }
  }
  if (!asked->metric.empty() && asked->series == nullptr) {
    co_return Status(Code::kNotFound, "No such metric " + asked->metric);
  }
  SetRange(*points, context.clock->Now(), *asked);
  co_return asked;
}

// Counters are added, whatever they declare.
Aggregator AggregatorOf(const Metric& metric) {
  return web::AggregatorOf(IsCounting(metric.type) ? Reduction::kSum : metric.reduction);
}

QuerySpec SpecOf(const Asked& asked, const Metric& metric, Aggregator aggregator) {
  QuerySpec spec;
  spec.metric = metric.name;
  spec.aggregator = aggregator;
  spec.start = asked.start;
  spec.end = asked.end;
  if (asked.interval != 0) {
    const bool gauge = !IsCounting(metric.type);
    const bool extreme = aggregator == Aggregator::kMin || aggregator == Aggregator::kMax;
    const Aggregator mean = extreme ? aggregator : Aggregator::kAvg;
    spec.downsample =
        Downsample{.interval = asked.interval, .function = gauge ? mean : Aggregator::kLast};
  }
  spec.filters.push_back(
      {TagFilter::Type::kLiteralOr, "job", asked.profile.job.id.ToString(), false});
  return spec;
}

// The points of one series.
QuerySpec SpecOf(const Asked& asked, const FootprintEntry& entry, Aggregator aggregator) {
  QuerySpec spec = SpecOf(asked, entry.series.metric, aggregator);
  for (const auto& [key, value] : entry.series.tags.pairs()) {
    spec.filters.push_back({TagFilter::Type::kLiteralOr, key, value, true});
  }
  return spec;
}

double InSeconds(Nanos time) { return static_cast<double>(time) / kSecond; }

// Times stay whole until they are written: a double of seconds since 1970 is a quarter of a
// microsecond off, and the difference of two at a short period far more than a rate may be.
using Line = std::vector<Point>;

Line LineOf(const std::vector<Point>& points) {
  Line line;
  line.reserve(points.size());
  for (const Point& point : points) {
    if (std::isfinite(point.value)) line.push_back(point);
  }
  return line;
}

// The rates of a counter whose line is downsampled: only the series shows where in a bucket its
// value lies, so the rates are queried.
bool AsksForRates(const QuerySpec& spec, const Metric& metric) {
  return spec.downsample && IsCounting(metric.type);
}

QuerySpec RatesOf(QuerySpec spec) {
  spec.rate = true;
  return spec;
}

// The same as Derived.
Line FromRates(const Line& line, const Line& rates) {
  Line out;
  if (line.empty()) return out;
  out.push_back({line.front().time, 0});
  for (const Point& rate : rates) {
    if (rate.time > line.front().time) out.push_back(rate);
  }
  return out;
}

// The change per second since the previous point; 0 at the first, as in metric-proxy.
Line Derived(const Line& line) {
  Line out;
  out.reserve(line.size());
  for (size_t i = 0; i < line.size(); ++i) {
    const double seconds = i == 0 ? 0 : InSeconds(line[i].time - line[i - 1].time);
    const double change = seconds > 0 ? (line[i].value - line[i - 1].value) / seconds : 0;
    out.push_back({line[i].time, change});
  }
  return out;
}

void WriteLine(const Line& line, Nanos offset, JsonWriter& json) {
  json.BeginArray();
  for (const auto& [time, value] : line) {
    json.BeginArray().Value(InSeconds(time - offset)).Value(value).EndArray();
  }
  json.EndArray();
}

Line FirstLine(const Answer& answer) {
  return answer.results.empty() ? Line() : LineOf(answer.results.front().points);
}

// --- /trace/list, /trace/metrics ---

// Running steps are all asked at the same time; of the others one profile is held at a time.
Task<Response> GetList(const Context& context, const Request& request) {
  const Result<uint64_t> limit = NumberParam(request, "limit", kDefaultTraces, 1, kMaxTraces);
  if (!limit.ok()) co_return ProxyError(limit.status());
  const Result<std::vector<JobDescription>> jobs =
      co_await Ask(*context.history, &StepHistory::Jobs, *limit);
  if (!jobs.ok()) co_return ProxyError(jobs.status());
  std::vector<JobStep> ids;
  for (const JobDescription& job : *jobs) {
    if (job.end == 0) ids.push_back(job.id);
  }
  const std::vector<Result<Profile>> running = co_await ProfilesOf(*context.history, ids);
  auto next = running.begin();
  Response response;
  JsonWriter json(response.body);
  json.BeginArray();
  for (const JobDescription& job : *jobs) {
    if (job.end == 0) {
      if (next->ok()) WriteInfo(**next, context.clock->Now(), json);
      ++next;
      continue;
    }
    const Result<Profile> profile =
        co_await Ask(*context.history, &StepHistory::GetProfile, job.id);
    if (profile.ok()) WriteInfo(*profile, context.clock->Now(), json);
  }
  json.EndArray();
  co_return response;
}

Task<Response> GetMetrics(const Context& context, const Request& request) {
  const Result<std::shared_ptr<Asked>> asked =
      co_await AskFor(context, request, request.Param("job"), nullptr);
  if (!asked.ok()) co_return ProxyError(asked.status());
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
    json.BeginArray().Value(InSeconds(time)).BeginObject().Key("Counter").BeginObject();
    json.Field("ts", InSeconds(time)).Field("value", value).EndObject().EndObject().EndArray();
  }
}

Response ReadResponse(const Asked& asked, const Answers& answers, Nanos now) {
  Response response;
  JsonWriter json(response.body);
  json.BeginObject().Key("info");
  WriteInfo(asked.profile, now, json);
  json.Key("time_serie").BeginArray();
  if (answers.size() == 3) WriteGauges(answers, json);
  if (answers.size() == 1) WriteCounters(answers, json);
  json.EndArray().EndObject();
  return response;
}

Task<Response> GetRead(const Context& context, const Request& request) {
  const Result<std::shared_ptr<Asked>> made =
      co_await AskFor(context, request, request.Param("job"), request.Param("filter"));
  if (!made.ok()) co_return ProxyError(made.status());
  const std::shared_ptr<const Asked> asked = *made;
  const Nanos now = context.clock->Now();
  if (asked->series == nullptr) co_return ReadResponse(*asked, {}, now);
  const Metric& metric = asked->series->series.metric;
  std::vector<QuerySpec> specs = {SpecOf(*asked, *asked->series, AggregatorOf(metric))};
  if (!IsCounting(metric.type)) {
    specs.push_back(SpecOf(*asked, *asked->series, Aggregator::kMin));
    specs.push_back(SpecOf(*asked, *asked->series, Aggregator::kMax));
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
  if (!plot.ok()) co_return ProxyError(plot.status());
  if (plot->filter.empty()) {
    co_return ProxyError({Code::kInvalid, "No filter GET parameter passed: a metric's name"});
  }
  const Result<std::shared_ptr<Asked>> made =
      co_await AskFor(context, request, &plot->job, &plot->filter);
  if (!made.ok()) co_return ProxyError(made.status());
  const std::shared_ptr<const Asked> asked = *made;
  const Metric& metric = asked->series->series.metric;
  std::vector<QuerySpec> specs = {SpecOf(*asked, *asked->series, AggregatorOf(metric))};
  if (plot->derivate && AsksForRates(specs[0], metric)) specs.push_back(RatesOf(specs[0]));
  const Result<Answers> answers = co_await Gather(context, std::move(specs));
  if (!answers.ok()) co_return ErrorResponse(answers.status());
  Line line = FirstLine(answers->front());
  if (answers->size() == 2) {
    line = FromRates(line, FirstLine(answers->back()));
  } else if (plot->derivate) {
    line = Derived(line);
  }
  Response response;
  JsonWriter json(response.body);
  WriteLine(line, 0, json);
  co_return response;
}

// --- /trace/json ---

// One query for each metric, whose series are the groups; after these, the queries for rates.
std::vector<QuerySpec> AllSpecs(const Asked& asked) {
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
    QuerySpec& spec = specs.emplace_back(SpecOf(asked, *metric, AggregatorOf(*metric)));
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
std::map<std::string, Line> LinesOf(std::span<const Answer> answers,
                                    const std::set<std::string>& wanted) {
  std::map<std::string, Line> lines;
  for (const Answer& answer : answers) {
    for (const QueryResult& result : answer.results) {
      Tags tags = result.tags;
      for (const char* key : {"job", "host", "task"}) tags.Erase(key);
      std::string name = SeriesName(result.metric, tags);
      Line line = LineOf(result.points);
      if (!line.empty() && wanted.contains(name)) lines.emplace(std::move(name), std::move(line));
    }
  }
  return lines;
}

// `metrics`: how many of the answers are values; the rest are rates.
Response JsonResponse(const Asked& asked, const Answers& answers, size_t metrics, Nanos now) {
  std::set<std::string> wanted;
  for (const FootprintEntry& entry : asked.profile.footprint) {
    wanted.insert(SeriesName(entry.series.metric.name, entry.series.tags));
  }
  const std::span<const Answer> all(answers);
  const std::map<std::string, Line> lines = LinesOf(all.first(metrics), wanted);
  const std::map<std::string, Line> rates = LinesOf(all.subspan(metrics), wanted);
  Nanos offset = std::numeric_limits<Nanos>::max();
  for (const auto& [name, line] : lines) offset = std::min(offset, line.front().time);
  Response response;
  JsonWriter json(response.body);
  json.BeginObject().Key("infos");
  WriteInfo(asked.profile, now, json);
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
  const Result<std::shared_ptr<Asked>> made =
      co_await AskFor(context, request, request.Param("jobid"), nullptr);
  if (!made.ok()) co_return ProxyError(made.status());
  const std::shared_ptr<Asked>& asked = *made;
  const Nanos now = context.clock->Now();
  const size_t series = std::max<size_t>(asked->profile.footprint.size(), 1);
  asked->interval = 0;
  const Result<uint64_t> points = NumberParam(request, "points", kDefaultPoints, 2, kMaxPoints);
  SetRange(std::clamp<uint64_t>(kMaxAllPoints / series, 2, *points), now, *asked);
  std::vector<QuerySpec> specs = AllSpecs(*asked);
  if (specs.empty()) co_return JsonResponse(*asked, {}, 0, now);
  const auto metrics = static_cast<size_t>(
      std::count_if(specs.begin(), specs.end(), [](const QuerySpec& spec) { return !spec.rate; }));
  const Result<Answers> answers = co_await Gather(context, std::move(specs));
  if (!answers.ok()) co_return ErrorResponse(answers.status());
  co_return JsonResponse(*asked, *answers, metrics, now);
}

constexpr RouteParam kPoints = {"points", "how many at most, 2 to 100000; 10000 if absent", kCount};
constexpr RouteParam kOfJob = {"job", "the step, such as 4711.0", kText, true};
constexpr RouteParam kOfId = {"jobid", "the step, such as 4711.0", kText, true};
constexpr RouteParam kFilter = {"filter", "the metric, as /trace/metrics lists it"};

constexpr Route kTracesRoutes[] = {
    {"/trace/list",
     Waits<GetList>,
     nullptr,
     {.about = "The steps, newest first, with the size of their records",
      .params = {{"limit", "how many at most, 1 to 1000; 100 if absent", kCount}},
      .answer = "[#Trace]"}},
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
