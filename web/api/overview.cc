// GET /api/v1/overview: what the page says of a step at its top, in the report's numbers, and its
// metrics in words.
#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "core/text/metric_title.h"
#include "core/text/step_title.h"
#include "profiles/json/writer.h"
#include "profiles/report/report.h"
#include "web/api/routes.h"
#include "web/proxy/snapshot.h"
#include "web/route/gather.h"
#include "web/route/waiting.h"

namespace sonde::web {
namespace {

struct MetricInShort {
  const Metric* metric = nullptr;
  size_t series = 0;  // reduced ones
  size_t still = 0;   // of these, that told nothing: counters of 0, gauges that never changed
  bool of_tasks = false;
};

// NaN is no change either.
bool IsStill(const FootprintEntry& entry) {
  if (IsCounting(entry.series.metric.type)) return !(entry.last > 0);
  return !(entry.max > entry.min);
}

// In the order of the profile.
std::vector<MetricInShort> MetricsOf(const Profile& profile) {
  std::vector<MetricInShort> metrics;
  std::map<std::string_view, size_t> index;
  for (const FootprintEntry& entry : profile.footprint) {
    const auto [at, is_new] = index.emplace(entry.series.metric.name, metrics.size());
    if (is_new) metrics.push_back({&entry.series.metric});
    MetricInShort& metric = metrics[at->second];
    ++metric.series;
    if (IsStill(entry)) ++metric.still;
    metric.of_tasks = metric.of_tasks || entry.max_owner.rank != Owner::kNobody ||
                      entry.min_owner.rank != Owner::kNobody;
  }
  return metrics;
}

void WriteMetrics(const Profile& profile, JsonWriter& json) {
  const std::vector<MetricInShort> metrics = MetricsOf(profile);
  std::map<std::string, size_t> times;
  for (const MetricInShort& one : metrics) ++times[MetricTitle(one.metric->name, one.metric->help)];
  json.Key("metrics").BeginArray();
  for (const MetricInShort& one : metrics) {
    const Metric& metric = *one.metric;
    std::string title = MetricTitle(metric.name, metric.help);
    if (times[title] > 1) title += " (" + metric.name + ")";
    json.BeginObject().Field("metric", metric.name).Field("title", title);
    json.Field("help", metric.help).Field("unit", metric.unit);
    json.Field("type", ToString(metric.type)).Field("level", metric.level);
    json.Field("series", one.series).Field("still", one.still == one.series);
    json.Field("by_task", one.of_tasks).EndObject();
  }
  json.EndArray();
}

Task<Response> GetOverview(const Context& context, const Request& request) {
  const std::string* job = request.Param("job");
  if (job == nullptr) {
    co_return ErrorResponse(
        {Code::kInvalid, "parameter job is missing: the job and step, such as 4711.0"});
  }
  const Result<Profile> profile =
      co_await Ask(*context.history, &StepHistory::GetProfile, JobStep::Parse(*job));
  if (!profile.ok()) co_return ErrorResponse(profile.status());
  const Nanos now = context.clock->Now();
  const Summary summary = Summarize(*profile, {}, now);
  Response response;
  JsonWriter json(response.body);
  json.BeginObject().Field("job", profile->job.id.ToString());
  json.Field("title", StepTitle(profile->job.name, profile->job.command));
  WriteReportTop(json, *profile, summary, now);
  WriteMetrics(*profile, json);
  json.EndObject();
  MarkFinal(profile->job, response);
  co_return response;
}

constexpr Route kOverviewRoutes[] = {
    {"/api/v1/overview",
     Waits<GetOverview>,
     nullptr,
     {.about = "A step in the report's numbers, and its metrics with their titles",
      .params = {{"job", "the step, such as 4711.0", kText, true}},
      .answer = "#Overview",
      .example = "?job=4711.0"}}};

}  // namespace

std::span<const Route> OverviewRoutes() { return kOverviewRoutes; }

}  // namespace sonde::web
