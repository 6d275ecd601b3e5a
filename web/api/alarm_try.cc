// GET /api/v1/alarms/try: when a rule would have raised an alarm in a step, from the series of its
// nodes (series/alarm/replay.h), in the form in which a profile has alarms.
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <utility>

#include "profiles/json/writer.h"
#include "series/alarm/derived_series.h"
#include "series/alarm/replay.h"
#include "web/api/routes.h"
#include "web/opentsdb/request.h"
#include "web/proxy/snapshot.h"
#include "web/route/gather.h"
#include "web/route/waiting.h"
#include "web/source/answers.h"

namespace sonde::web {
namespace {

constexpr std::string_view kTryName = "tried";  // of a rule without a name

struct Trial {
  alarms::Rule rule;
  JobDescription job;
  std::vector<Metric> metrics;       // of the rule, as far as the step has them
  std::vector<std::string> missing;  // the others
  Nanos start = 0;
  Nanos end = 0;
};

Status ReadRange(const Context& context, const Request& request, Trial& trial) {
  const Nanos now = context.clock->Now();
  trial.start = trial.job.start;
  // A range holds its end, and the last sample is a little before that of the step.
  trial.end = trial.job.end != 0 ? trial.job.end + kSecond : now;
  for (const auto& [name, out] : {std::pair("start", &trial.start), std::pair("end", &trial.end)}) {
    const std::string* text = request.Param(name);
    if (text == nullptr) continue;
    const Result<Nanos> time = ParseOpenTsdbTime(*text, now);
    if (!time.ok()) return time.status().Within(name);
    *out = *time;
  }
  return trial.end > trial.start ? Status() : Status(Code::kInvalid, "end must lie after start");
}

// Before anything is read: what the replay would refuse afterwards.
Status CheckSize(const Profile& profile, const Trial& trial) {
  size_t series = 0;
  for (const FootprintEntry& entry : profile.footprint) {
    const bool wanted =
        std::any_of(trial.metrics.begin(), trial.metrics.end(),
                    [&](const Metric& metric) { return metric.name == entry.series.metric.name; });
    if (wanted) series += std::max<size_t>(trial.job.nodes.size(), trial.job.expected_tasks);
  }
  const Nanos period = std::max(trial.job.period, kMinPeriod);
  const Nanos last = std::min(trial.end, trial.job.end != 0 ? trial.job.end : trial.end);
  const Nanos first = std::max(trial.start, trial.job.start);
  const auto ticks = static_cast<size_t>(std::max<Nanos>(last - first, 0) / period + 1);
  series = std::max<size_t>(series, 1);
  if (ticks <= alarms::kMaxReplayValues / series) return {};
  return {Code::kLimit,
          fmt::format("{} series at {} ticks are more than {} values: try the rule on a shorter "
                      "range, by start and end",
                      series, ticks, alarms::kMaxReplayValues)};
}

void FindMetrics(const Profile& profile, Trial& trial) {
  for (const std::string& name : alarms::MetricsOf(trial.rule)) {
    const auto at =
        std::find_if(profile.footprint.begin(), profile.footprint.end(),
                     [&](const FootprintEntry& entry) { return entry.series.metric.name == name; });
    if (at != profile.footprint.end()) {
      trial.metrics.push_back(at->series.metric);
    } else if (name != alarms::kAliveMetric) {
      trial.missing.push_back(name);
    }
  }
}

Task<Result<Trial>> ReadTrial(const Context& context, const Request& request) {
  const std::string* job = request.Param("job");
  const std::string* rule = request.Param("rule");
  if (job == nullptr || rule == nullptr) {
    co_return Status(
        Code::kInvalid,
        "parameters job and rule are needed, such as 4711.0 and node_load1 > 33 for 5s");
  }
  const std::string* name = request.Param("name");
  Result<alarms::Rule> parsed = alarms::ParseRule(
      name == nullptr || name->empty() ? kTryName : std::string_view(*name), *rule);
  if (!parsed.ok()) co_return parsed.status();
  if (const Status bad = alarms::CheckReplay(*parsed); !bad.ok()) co_return bad;
  Result<Profile> profile =
      co_await Ask(*context.history, &StepHistory::GetProfile, JobStep::Parse(*job));
  if (!profile.ok()) co_return profile.status();
  Trial trial;
  trial.rule = *std::move(parsed);
  trial.job = profile->job;
  if (const Status bad = ReadRange(context, request, trial); !bad.ok()) co_return bad;
  FindMetrics(*profile, trial);
  if (const Status bad = CheckSize(*profile, trial); !bad.ok()) co_return bad;
  co_return trial;
}

std::vector<QuerySpec> SpecsOf(const Trial& trial) {
  std::vector<QuerySpec> specs;
  for (const Metric& metric : trial.metrics) {
    QuerySpec& spec = specs.emplace_back();
    spec.metric = metric.name;
    spec.aggregator = Aggregator::kNone;
    spec.start = trial.start;
    spec.end = trial.end;
    spec.filters.push_back(
        {TagFilter::Type::kLiteralOr, "job", trial.job.id.ToString(), /*group_by=*/false});
  }
  return specs;
}

// The nodes with their series. A host on which a daemon was started anew is one node.
std::vector<alarms::ReplayNode> NodesOf(const Trial& trial, Answers& answers) {
  std::vector<alarms::ReplayNode> nodes;
  std::map<std::string, size_t, std::less<>> places;
  for (uint32_t i = 0; i < trial.job.nodes.size(); ++i) {
    const NodeInfo& node = trial.job.nodes[i];
    const auto [at, added] = places.try_emplace(node.host, nodes.size());
    if (added) nodes.push_back({node.host, i, node.joined, 0, {}});
    nodes[at->second].left = node.left;
  }
  for (size_t i = 0; i < answers.size(); ++i) {
    for (QueryResult& result : answers[i].results) {
      const std::string* host = result.tags.Find(alarms::kHostTag);
      const auto at = host == nullptr ? places.end() : places.find(*host);
      if (at == places.end()) continue;
      SeriesData data;
      data.series.metric = trial.metrics[i];
      data.series.tags = result.tags;
      data.series.tags.Erase(std::string(alarms::kHostTag));
      data.series.tags.Erase("job");
      data.points = std::move(result.points);
      nodes[at->second].series.push_back(std::move(data));
    }
  }
  return nodes;
}

void WriteOwner(const Trial& trial, Owner owner, JsonWriter& json) {
  if (owner.node >= trial.job.nodes.size()) return;
  json.Key("by").BeginObject().Field("node", owner.node);
  json.Field("host", trial.job.nodes[owner.node].host);
  if (owner.rank != Owner::kNobody) json.Field("rank", owner.rank);
  json.EndObject();
}

void WriteReplayed(const Trial& trial, const alarms::Replayed& alarm, JsonWriter& json) {
  json.BeginObject().Field("rule", trial.rule.name);
  json.Field("severity", ToString(trial.rule.severity)).Field("text", alarm.text);
  json.Key("tags").BeginObject();
  for (const auto& [key, value] : alarm.tags.pairs()) json.Field(key, value);
  json.EndObject().Field("raised", alarm.raised).Field("over", alarm.over);
  json.Field("value", alarm.value);
  WriteOwner(trial, alarm.owner, json);
  json.EndObject();
}

Response TrialResponse(const Trial& trial, const Answers& answers, const alarms::Replay& replay) {
  Response response;
  JsonWriter json(response.body);
  json.BeginObject().Field("job", trial.job.id.ToString()).Field("name", trial.rule.name);
  json.Field("rule", ToText(trial.rule)).Field("rows", replay.rows);
  json.Field("first", replay.first).Field("last", replay.last).Field("raised", replay.raised);
  Answer all;
  for (const Answer& answer : answers) KeepWorst(answer, all);
  json.Field("nodes_answered", all.nodes_answered);
  json.Field("nodes_expected", all.nodes_expected);
  json.Key("missing").BeginArray();
  for (const std::string& metric : trial.missing) json.Value(metric);
  json.EndArray().Key("alarms").BeginArray();
  for (const alarms::Replayed& alarm : replay.alarms) WriteReplayed(trial, alarm, json);
  json.EndArray().EndObject();
  MarkFinal(trial.job, response);
  return response;
}

Task<Response> TryAlarm(const Context& context, const Request& request) {
  const Result<Trial> trial = co_await ReadTrial(context, request);
  if (!trial.ok()) co_return ErrorResponse(trial.status());
  Result<Answers> answers = co_await Gather(context, SpecsOf(*trial));
  if (!answers.ok()) co_return ErrorResponse(answers.status());
  const std::vector<alarms::ReplayNode> nodes = NodesOf(*trial, *answers);
  const Result<alarms::Replay> replay = alarms::ReplayRule(
      trial->rule, nodes, std::max(trial->job.period, kMinPeriod), trial->start, trial->end);
  if (!replay.ok()) co_return ErrorResponse(replay.status());
  co_return TrialResponse(*trial, *answers, *replay);
}

constexpr Route kAlarmTryRoutes[] = {
    {"/api/v1/alarms/try",
     Waits<TryAlarm>,
     nullptr,
     {.about =
          "When an alarm rule would have been raised in a step so far, or in one that has ended",
      .params = {{"job", "the step, such as 4711.0", kText, true},
                 {"rule", "the rule as text: METRIC > 33 for 5s", kText, true},
                 {"name", "of the rule"},
                 {"start", "a time as /api/query takes it; the step's start if absent"},
                 {"end", "the step's end if absent"}},
      .answer = "#AlarmTrial",
      .example = "?job=4711.0&rule=node_load1%20any%20%3E%203%20for%2010s"}}};

}  // namespace

std::span<const Route> AlarmTryRoutes() { return kAlarmTryRoutes; }

}  // namespace sonde::web
