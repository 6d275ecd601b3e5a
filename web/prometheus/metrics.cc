// GET /metrics: the present numbers of steps for Prometheus, and GET /api/sd: the running steps as
// its targets.
//
// One sample per reduced series: the step's number by the metric's reduction, with the series' own
// tags and `job` as labels. What declares its spread has percentiles besides, as NAME_spread with
// the label `percentile`. With scope=node there is one for each node instead, with the label
// `host`: that asks every node, and has a bound.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "profiles/json_writer.h"
#include "web/exposition_merge.h"
#include "web/exposition_text.h"
#include "web/proxy/all_steps.h"
#include "web/router.h"
#include "web/running_step.h"

namespace sonde::web {
namespace {

// In a family of their own, so that a sum over the metric's samples stays one.
void AddSpread(const FootprintEntry& entry, const std::string& job, Exposition& out) {
  Metric spread;
  const bool counts = entry.series.metric.type != MetricType::kGauge;
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

// The steps that a request means: one, finished or not; "main", their sum; else all that run.
Result<std::vector<Profile>> AskedSteps(const Context& context, const std::string* job) {
  if (job == nullptr || *job == kMainJob) return RunningProfiles(*context.source);
  Result<Profile> profile = context.source->GetProfile(JobStep::Parse(*job));
  if (!profile.ok()) return profile.status();
  std::vector<Profile> one;
  one.push_back(*std::move(profile));
  return one;
}

// Of every node, or of the one that metric-proxy's name of a job means.
void GetNodes(const Context& context, std::vector<Profile> steps, const std::string& host,
              ExpositionFormat format, const Reply& reply) {
  Result<NodeValues> made = NodeValues::Make(std::move(steps), host, context.clock->Now());
  if (!made.ok()) return reply(ProxyError(made.status()));
  const auto asked = std::make_shared<const NodeValues>(*std::move(made));
  const auto make = [asked, format](const Answers& answers) {
    std::map<std::string, Nanos> began;
    for (const Profile& step : asked->steps()) began[step.job.id.ToString()] = step.job.start;
    Exposition out;
    for (const NodeValues::Value& value : asked->Read(answers)) {
      Tags tags = value.tags;
      tags.Set("job", value.job);
      tags.Set("host", value.host);
      out.Add(*value.metric, tags, value.value, began[value.job]);
    }
    return MetricsResponse(out, format);
  };
  if (asked->specs().empty()) return reply(make({}));
  GatherAndReply(context, asked->specs(), reply, make);
}

// The answers of the servers that know more of running steps, put together when the last is there.
struct Forwarded {
  std::mutex mutex;
  size_t left = 0;
  std::vector<Response> answers;
};

// Nothing if they cannot be put together.
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
    return ProxyError({Code::kLimit, fmt::format("the nodes of {} steps have {} bytes of metrics, "
                                                 "more than {}: name a job",
                                                 answers.size(), bytes, kMaxBytes)});
  }
  std::optional<std::string> merged = MergeExpositions(texts);
  if (!merged) return std::nullopt;
  answers.front().body = *std::move(merged);
  return std::move(answers.front());
}

// Every node's metrics of steps that run come from the servers that know more of them, such as
// their heads, at once; from here they would be asked for metric by metric, which `here` does if
// one does not answer. False if there are no such servers. Answers come on threads of the source's,
// which must not hold the last of the source.
bool ForwardNodes(const Context& context, const Request& request, const std::vector<Profile>& steps,
                  const std::function<void(const Context&)>& here, const Reply& reply) {
  const bool run = std::all_of(steps.begin(), steps.end(),
                               [](const Profile& step) { return step.job.end == 0; });
  if (steps.empty() || !run) return false;
  Request each = request;
  // A head has one step, and a text of several is not merged with one that is an error.
  if (steps.size() > 1) each.target = "/metrics?scope=node";
  const auto all = std::make_shared<Forwarded>();
  all->left = steps.size();
  all->answers.resize(steps.size());
  const auto finish = [reply, here, all, source = std::weak_ptr(context.source),
                       clock = context.clock, executor = context.executor] {
    constexpr int kOk = 200, kUnavailable = 503;
    std::optional<Response> answer;
    const auto bad = std::find_if(all->answers.begin(), all->answers.end(),
                                  [](const Response& one) { return one.status != kOk; });
    if (bad == all->answers.end()) {
      answer = Together(all->answers);
      if (answer) answer->headers.emplace_back("Vary", "Accept");
    } else if (all->answers.size() == 1 && (bad->status != kUnavailable || !executor)) {
      answer = std::move(*bad);
    }
    if (answer) return reply(*std::move(answer));
    const auto alive = source.lock();
    alive ? here({alive, clock, executor}) : reply(ErrorResponse(503, "the server is stopping"));
  };
  for (size_t i = 0; i < steps.size(); ++i) {
    const auto answered = [all, i, finish, executor = context.executor](Response response) {
      {
        const std::lock_guard lock(all->mutex);
        all->answers[i] = std::move(response);
        if (--all->left != 0) return;
      }
      executor ? executor(finish) : finish();
    };
    if (context.source->Forward(steps[i].job.id, each, answered)) continue;
    // It has ended meanwhile, or nobody serves any of them.
    if (i == 0) return false;
    answered(ErrorResponse(503, "the step has ended"));
  }
  return true;
}

void GetMetrics(const Context& context, const Request& request, Reply reply) {
  const ExpositionFormat format = ChooseFormat(request.accept);
  const std::string* job = request.Param("job");
  const std::string* scope = request.Param("scope");
  if (scope != nullptr && *scope != "node" && *scope != "job") {
    return reply(ProxyError({Code::kInvalid, "scope: expected job or node"}));
  }
  const auto node = job == nullptr ? std::nullopt : NodeOfJob(*job);
  Result<std::vector<Profile>> steps = AskedSteps(context, node ? nullptr : job);
  if (!steps.ok()) return reply(ProxyError(steps.status()));
  if (node || (scope != nullptr && *scope == "node")) {
    const auto here = [steps = *steps, host = node.value_or(""), format, reply](const Context& c) {
      GetNodes(c, steps, host, format, reply);
    };
    // Several steps may have the node, or one of them.
    const bool one_node = node && steps->size() > 1;
    if (!one_node && ForwardNodes(context, request, *steps, here, reply)) return;
    return here(context);
  }
  Exposition out;
  if (job != nullptr && *job == kMainJob) {
    AddProfile(SumOf(*steps), out);
  } else {
    for (const Profile& profile : *steps) AddProfile(profile, out);
  }
  reply(MetricsResponse(out, format));
}

// As http_sd_configs reads it: this server, once for each step. With ?scope=node the targets are
// those of the nodes' values.
void GetDiscovery(const Context& context, const Request& request, Reply reply) {
  const std::string* scope = request.Param("scope");
  if (scope != nullptr && *scope != "node" && *scope != "job") {
    return reply(ErrorResponse(400, "scope: expected job or node"));
  }
  if (request.host.empty()) return reply(ErrorResponse(400, "the header Host is missing"));
  const Result<std::vector<JobDescription>> steps = RunningSteps(*context.source);
  if (!steps.ok()) return reply(ErrorResponse(steps.status()));
  Response response;
  JsonWriter json(response.body);
  json.BeginArray();
  for (const JobDescription& job : *steps) {
    json.BeginObject().Key("targets").BeginArray().Value(request.host).EndArray();
    json.Key("labels").BeginObject().Field("__metrics_path__", "/metrics");
    json.Field("__param_job", job.id.ToString());
    if (scope != nullptr) json.Field("__param_scope", *scope);
    json.Field("__meta_sonde_job", job.id.ToString()).Field("__meta_sonde_name", job.name);
    json.Field("__meta_sonde_user", job.user).Field("__meta_sonde_partition", job.partition);
    json.Field("__meta_sonde_cluster", job.cluster).EndObject().EndObject();
  }
  json.EndArray();
  reply(std::move(response));
}

constexpr RouteParam kScope = {"scope", "node: one sample for each node; job is the default",
                               R"({"type":"string","enum":["job","node"]})"};
constexpr RouteDoc kMetrics = {
    .about = "The present numbers of the running steps, or of one, as Prometheus scrapes them",
    .params = {{"job", "the step, running or not; main: the sum; Node: NAME"}, kScope},
    .answer = "text/plain",
    .example = "?job=4711.0"};

constexpr Route kRoutes[] = {
    {"/metrics", GetMetrics, nullptr, kMetrics},
    {"/metrics/", GetMetrics, nullptr, kMetrics},
    {"/api/sd",
     GetDiscovery,
     nullptr,
     {.about = "The running steps as targets for Prometheus' http_sd_configs",
      .params = {kScope},
      .answer = R"({"type":"array","items":{"type":"object","required":["targets","labels"],)"
                R"("properties":{"targets":{"type":"array","items":{"type":"string"}},)"
                R"("labels":{"type":"object","additionalProperties":{"type":"string"}}}}})"}}};

}  // namespace

std::span<const Route> MetricsRoutes() { return kRoutes; }

}  // namespace sonde::web
