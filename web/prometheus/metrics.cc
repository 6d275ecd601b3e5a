// GET /metrics: the present numbers of steps for Prometheus, and GET /api/sd: the running steps as
// its targets.
//
// One sample per reduced series: the step's number by the metric's reduction, with the series' own
// tags and `job` as labels. A metric that declares its spread also has percentiles, as NAME_spread
// with the label `percentile`. With scope=node there is one sample for each node instead, with the
// label `host`: that asks every node, and is limited.
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "profiles/json/writer.h"
#include "web/prometheus/exposition_merge.h"
#include "web/prometheus/exposition_text.h"
#include "web/prometheus/routes.h"
#include "web/proxy/all_steps.h"
#include "web/route/waiting.h"
#include "web/source/running_step.h"

namespace sonde::web {
namespace {

// Percentiles are a family of their own, so that a sum over the metric's samples stays correct.
void AddSpread(const FootprintEntry& entry, const std::string& job, Exposition& out) {
  Metric spread;
  const bool counts = IsCounting(entry.series.metric.type);
  spread.name = entry.series.metric.name + (counts ? "_rate_spread" : "_spread");
  spread.help = fmt::format("Percentiles over nodes or tasks of {}{}.", entry.series.metric.name,
                            counts ? ", of its rate per second" : "");
  for (size_t i = 0; i < kSpreadColumns; ++i) {
    Tags tags = entry.series.tags;
    tags.Set("percentile", kSpreadNames[i].substr(1));
    tags.Set("job", job);
    out.Add(spread, tags, entry.spread->last[i], 0);
  }
}

void AddProfile(const Profile& profile, Exposition& out) {
  const std::string job = profile.job.id.ToString();
  for (const FootprintEntry& entry : profile.footprint) {
    Tags tags = entry.series.tags;
    tags.Set("job", job);
    // Counters count from the step's start.
    out.Add(entry.series.metric, tags, entry.last, profile.job.start);
    if (entry.spread) AddSpread(entry, job, out);
  }
  Metric coverage;
  coverage.name = "sonde_coverage_ratio";
  coverage.unit = "ratio";
  coverage.help = "Share of the step's node samples that arrived.";
  out.Add(coverage, {{"job", job}}, profile.job.coverage.Ratio(), 0);
}

Response MetricsResponse(const Exposition& exposition, ExpositionFormat format) {
  Response response;
  response.content_type = ContentType(format);
  response.headers.emplace_back("Vary", "Accept");
  response.body = exposition.Format(format);
  return response;
}

// The steps of a request: one, finished or not; "main", their sum; else all running ones.
Task<Result<std::vector<Profile>>> AskedSteps(const Context& context, const std::string* job) {
  if (job == nullptr || *job == kMainJob) co_return co_await RunningProfiles(*context.history);
  Result<Profile> profile =
      co_await Ask(*context.history, &StepHistory::GetProfile, JobStep::Parse(*job));
  if (!profile.ok()) co_return profile.status();
  std::vector<Profile> one;
  one.push_back(*std::move(profile));
  co_return one;
}

// The metrics of every node, or of the node that metric-proxy's name of a job means.
Task<Response> GetNodes(const Context& context, std::vector<Profile> steps, std::string host,
                        ExpositionFormat format) {
  const Result<NodeValues> asked = NodeValues::Make(std::move(steps), host, context.clock->Now());
  if (!asked.ok()) co_return ErrorResponse(asked.status());
  const Result<Answers> answers = co_await Gather(context, asked->specs());
  if (!answers.ok()) co_return ErrorResponse(answers.status());
  std::map<std::string, Nanos> began;
  for (const Profile& step : asked->steps()) began[step.job.id.ToString()] = step.job.start;
  Exposition out;
  for (const NodeValues::Value& value : asked->Read(*answers)) {
    Tags tags = value.tags;
    tags.Set("job", value.job);
    tags.Set("host", value.host);
    out.Add(*value.metric, tags, value.value, began[value.job]);
  }
  co_return MetricsResponse(out, format);
}

// Merges texts; nothing if they cannot be merged.
std::optional<Response> Together(std::vector<Response>& answers) {
  if (answers.size() == 1) return std::move(answers.front());
  std::vector<std::string_view> texts;
  size_t bytes = 0;
  for (const Response& answer : answers) {
    texts.emplace_back(answer.body);
    bytes += answer.body.size();
  }
  constexpr size_t kMaxBytes = 64u << 20;
  if (bytes > kMaxBytes) {
    return ErrorResponse(
        {Code::kLimit, fmt::format("the nodes of {} steps have {} bytes of metrics, "
                                   "more than {}: name a job",
                                   answers.size(), bytes, kMaxBytes)});
  }
  std::optional<std::string> merged = MergeExpositions(texts);
  if (!merged) return std::nullopt;
  answers.front().body = *std::move(merged);
  return std::move(answers.front());
}

// Metrics of every node of running steps come at once from the servers that know more of them, such
// as their heads; from here they would be asked for metric by metric. Nothing if there are no such
// servers, or if one does not answer and the others can be asked from here.
Task<std::optional<Response>> ForwardNodes(const Context& context, const Request& request,
                                           const std::vector<Profile>& steps) {
  constexpr int kOk = 200, kUnavailable = 503;
  const bool run = std::all_of(steps.begin(), steps.end(),
                               [](const Profile& step) { return step.job.end == 0; });
  if (steps.empty() || !run) co_return std::nullopt;
  Request each = request;
  each.waits_for_others = true;
  // A head has one step, and an error cannot be merged with the texts of others.
  if (steps.size() > 1) each.target = "/metrics?scope=node";
  using Forwarded = std::optional<Response>;
  std::vector<Forwarded> forwarded = co_await AskEach<Forwarded>(
      steps.size(), [&](size_t i, StepControl::ForwardCallback callback) {
        context.control->Forward(steps[i].job.id, each, std::move(callback));
      });
  // No server has any of the steps.
  if (!forwarded.front()) co_return std::nullopt;
  std::vector<Response> answers;
  for (Forwarded& one : forwarded) {
    if (!one) one = ErrorResponse(kUnavailable, "the step has ended");
    answers.push_back(*std::move(one));
  }
  const auto bad = std::find_if(answers.begin(), answers.end(),
                                [](const Response& one) { return one.status != kOk; });
  if (bad != answers.end()) {
    if (answers.size() == 1 && bad->status != kUnavailable) co_return std::move(*bad);
    co_return std::nullopt;
  }
  std::optional<Response> answer = Together(answers);
  if (answer) answer->headers.emplace_back("Vary", "Accept");
  co_return answer;
}

Task<Response> GetMetrics(const Context& context, const Request& request) {
  const ExpositionFormat format = ChooseFormat(request.accept);
  const std::string* job = request.Param("job");
  const std::string* scope = request.Param("scope");
  if (scope != nullptr && *scope != "node" && *scope != "job") {
    co_return ErrorResponse({Code::kInvalid, "scope: expected job or node"});
  }
  const auto node = job == nullptr ? std::nullopt : NodeOfJob(*job);
  Result<std::vector<Profile>> steps = co_await AskedSteps(context, node ? nullptr : job);
  if (!steps.ok()) co_return ErrorResponse(steps.status());
  if (node || (scope != nullptr && *scope == "node")) {
    // Several steps may use the node, or one of them.
    const bool one_node = node && steps->size() > 1;
    if (!one_node) {
      std::optional<Response> forwarded = co_await ForwardNodes(context, request, *steps);
      if (forwarded) co_return *std::move(forwarded);
    }
    const std::string host = node.value_or("");
    co_return co_await GetNodes(context, *std::move(steps), host, format);
  }
  Exposition out;
  if (job != nullptr && *job == kMainJob) {
    AddProfile(SumOf(*steps), out);
  } else {
    for (const Profile& profile : *steps) AddProfile(profile, out);
  }
  co_return MetricsResponse(out, format);
}

// In the form of http_sd_configs: this server, once for each step. With ?scope=node the targets
// serve the nodes' values.
Task<Response> GetDiscovery(const Context& context, const Request& request) {
  const std::string* scope = request.Param("scope");
  if (scope != nullptr && *scope != "node" && *scope != "job") {
    co_return ErrorResponse(400, "scope: expected job or node");
  }
  if (request.host.empty()) co_return ErrorResponse(400, "the header Host is missing");
  const Result<std::vector<JobDescription>> steps = co_await RunningSteps(*context.history);
  if (!steps.ok()) co_return ErrorResponse(steps.status());
  Response response;
  JsonWriter json(response.body);
  json.BeginArray();
  for (const JobDescription& job : *steps) {
    json.BeginObject().Key("targets").BeginArray().Value(request.host).EndArray();
    json.Key("labels").BeginObject().Field("__metrics_path__", request.prefix + "/metrics");
    json.Field("__param_job", job.id.ToString());
    if (scope != nullptr) json.Field("__param_scope", *scope);
    json.Field("__meta_sonde_job", job.id.ToString()).Field("__meta_sonde_name", job.name);
    json.Field("__meta_sonde_user", job.user).Field("__meta_sonde_partition", job.partition);
    json.Field("__meta_sonde_cluster", job.cluster).EndObject().EndObject();
  }
  json.EndArray();
  co_return response;
}

constexpr RouteParam kScope = {"scope", "node: one sample for each node; job is the default",
                               R"({"type":"string","enum":["job","node"]})"};
constexpr RouteDoc kMetrics = {
    .about = "The present numbers of the running steps, or of one, as Prometheus scrapes them",
    .params = {{"job", "the step, running or not; main: the sum; Node: NAME"}, kScope},
    .answer = "text/plain",
    .example = "?job=4711.0"};

constexpr Route kMetricsRoutes[] = {
    {"/metrics", Waits<GetMetrics>, nullptr, kMetrics},
    {"/metrics/", Waits<GetMetrics>, nullptr, kMetrics},
    {"/api/sd",
     Waits<GetDiscovery>,
     nullptr,
     {.about = "The running steps as targets for Prometheus' http_sd_configs",
      .params = {kScope},
      .answer = R"({"type":"array","items":{"type":"object","required":["targets","labels"],)"
                R"("properties":{"targets":{"type":"array","items":{"type":"string"}},)"
                R"("labels":{"type":"object","additionalProperties":{"type":"string"}}}}})"}}};

}  // namespace

std::span<const Route> MetricsRoutes() { return kMetricsRoutes; }

}  // namespace sonde::web
