// /alarms, /alarms/list, /alarms/add, /alarms/del: the alarm rules of a running step, in the shapes
// of metric-proxy. The target "main", or no target, means the only step that runs here; if several
// run, all are listed, each under its name. The target "Node: NAME" is that node of the step.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "profiles/json/writer.h"
#include "series/alarm/text.h"
#include "web/http/json_input.h"
#include "web/proxy/all_steps.h"
#include "web/proxy/each_step.h"
#include "web/proxy/routes.h"
#include "web/route/waiting.h"
#include "web/source/running_step.h"

namespace sonde::web {
namespace {

// A request's parameters or JSON body: texts, and numbers as texts.
struct AlarmFields {
  std::string name, target, targetjob, rule, metric, operation, value;

  std::string* Find(std::string_view key) {
    if (key == "name") return &name;
    if (key == "target") return &target;
    if (key == "targetjob") return &targetjob;
    if (key == "rule") return &rule;
    if (key == "metric") return &metric;
    if (key == "operation") return &operation;
    return key == "value" ? &value : nullptr;
  }
};
constexpr std::string_view kFields = "name, target, metric, operation, value or rule";

Status ReadField(const boost::json::value& value, std::string_view key, AlarmFields& fields) {
  std::string* field = fields.Find(key);
  // Other parts of a rule, such as its severity, are in its text.
  if (field == nullptr) return NoSuchField(key, kFields);
  if (value.is_null()) return {};
  if (value.is_number()) {
    *field = fmt::format("{}", value.to_number<double>());
    return {};
  }
  return value.is_string() ? ReadText(value, key, *field) : Wrong(key, "a text or a number");
}

Result<AlarmFields> AlarmFieldsOf(const Request& request) {
  AlarmFields fields;
  if (request.method != Method::kPost) {
    for (const auto& [key, value] : request.params) {
      std::string* field = fields.Find(key);
      if (field != nullptr && field->empty()) *field = value;
    }
    return fields;
  }
  return WithObject<AlarmFields>(request.body,
                                 [&](const boost::json::object& object) -> Result<AlarmFields> {
                                   for (const auto& [key, value] : object) {
                                     SONDE_RETURN_IF_ERROR(ReadField(value, View(key), fields));
                                   }
                                   return fields;
                                 });
}

// Makes the text of a rule from metric-proxy's members; it goes through the parser like any other
// text, and so cannot say more than a rule can.
Result<std::string> RuleText(const AlarmFields& fields) {
  if (!fields.rule.empty()) return fields.rule;
  if (fields.metric.empty() || fields.operation.empty() || fields.value.empty()) {
    return Status(Code::kInvalid,
                  R"(expected {"name": ..., "target": "main", "metric": ..., "operation": ">", )"
                  R"("value": 33}, or {"name": ..., "rule": "METRIC > 33 for 5s"})");
  }
  std::string metric = fields.metric;
  if (const std::optional<std::string> node = NodeOfJob(fields.target)) {
    const std::string host = fmt::format("host=\"{}\"", *node);
    if (metric.ends_with('}')) {
      metric.insert(metric.size() - 1, (metric.ends_with("{}") ? "" : ",") + host);
    } else {
      metric += "{" + host + "}";
    }
  }
  return metric + " " + fields.operation + " " + fields.value;
}

// The running step that a target means: of a node, the one that runs there.
Task<Result<JobStep>> StepOf(const Context& context, std::string target) {
  const std::optional<std::string> node = NodeOfJob(target);
  if (!node) co_return co_await RunningStep(*context.history, target);
  const Result<std::vector<Profile>> running = co_await RunningProfiles(*context.history);
  if (!running.ok()) co_return running.status();
  std::vector<JobStep> there;
  for (const Profile& step : *running) {
    const bool has = std::any_of(step.job.nodes.begin(), step.job.nodes.end(),
                                 [&](const NodeInfo& one) { return one.host == *node; });
    if (has) there.push_back(step.job.id);
  }
  if (there.size() == 1) co_return there.front();
  if (there.empty()) {
    co_return Status(Code::kNotFound, fmt::format("no step runs on a node '{}'", *node));
  }
  co_return Status(Code::kInvalid,
                   fmt::format("several steps run on {}: name one as the target, and the node in a "
                               "rule, as in METRIC{{host={}}} > 33",
                               *node, *node));
}

// Whoever writes a rule knows what it is about, and may mean a metric that is yet to come. A client
// of metric-proxy's that names an unknown metric is told, as there.
Task<Status> CheckMetric(const Context& context, const AlarmFields& fields,
                         const alarms::Rule& rule) {
  if (!fields.rule.empty()) co_return Status();
  const std::string& metric = rule.conditions.front().metric;
  const Result<std::vector<Series>> series =
      co_await Ask(*context.series, &StepSeries::ListSeries, std::string_view(metric), size_t{1});
  if (!series.ok()) co_return series.status();
  if (!series->empty()) co_return Status();
  co_return Status(
      Code::kInvalid,
      fmt::format("there is no metric '{}' yet; one that is to come can be named in a rule, as in "
                  R"({{"name": ..., "rule": "{} > 33"}})",
                  metric, metric));
}

Response Done(std::string_view operation, const JobStep& id, const std::string& name) {
  Response response;
  JsonWriter json(response.body);
  json.BeginObject().Field("operation", operation).Field("success", true);
  json.Field("job", id.ToString()).Field("name", name).EndObject();
  return response;
}

Task<Response> Add(const Context& context, const Request& request) {
  const Result<AlarmFields> fields = AlarmFieldsOf(request);
  if (!fields.ok()) co_return ErrorResponse(fields.status());
  const Result<std::string> text = RuleText(*fields);
  if (!text.ok()) co_return ErrorResponse(text.status());
  const Result<alarms::Rule> rule = alarms::ParseRule(fields->name, *text);
  if (!rule.ok()) co_return ErrorResponse(rule.status());
  const Result<JobStep> id = co_await StepOf(context, fields->target);
  if (!id.ok()) co_return ErrorResponse(id.status());
  std::optional<Response> forwarded =
      co_await Ask(*context.control, &StepControl::Forward, *id, request);
  if (forwarded) co_return *std::move(forwarded);
  if (const Status known = co_await CheckMetric(context, *fields, *rule); !known.ok()) {
    co_return ErrorResponse(known);
  }
  Status added = context.control->AddAlarm(*id, *rule);
  // The name is taken: the request has to change.
  if (added.code() == Code::kBusy) added = {Code::kInvalid, std::string(added.message())};
  if (!added.ok()) co_return ErrorResponse(added);
  co_return Done("add", *id, fields->name);
}

Task<Response> Delete(const Context& context, const Request& request) {
  const Result<AlarmFields> fields = AlarmFieldsOf(request);
  if (!fields.ok()) co_return ErrorResponse(fields.status());
  if (fields->name.empty()) {
    co_return ErrorResponse({Code::kInvalid, "the name of the alarm is needed"});
  }
  const std::string& target = fields->targetjob.empty() ? fields->target : fields->targetjob;
  const Result<JobStep> id = co_await StepOf(context, target);
  if (!id.ok()) co_return ErrorResponse(id.status());
  std::optional<Response> forwarded =
      co_await Ask(*context.control, &StepControl::Forward, *id, request);
  if (forwarded) co_return *std::move(forwarded);
  const Status removed = context.control->RemoveAlarm(*id, fields->name);
  if (!removed.ok()) co_return ErrorResponse(removed);
  co_return Done("del", *id, fields->name);
}

std::string_view OperatorName(alarms::Test test) {
  switch (test) {
    case alarms::Test::kGreater:
      return "More";
    case alarms::Test::kGreaterEqual:
      return "MoreOrEqual";
    case alarms::Test::kLess:
      return "Less";
    case alarms::Test::kLessEqual:
      return "LessOrEqual";
    case alarms::Test::kEqual:
      return "Equal";
    case alarms::Test::kNotEqual:
      return "NotEqual";
    case alarms::Test::kAbsent:
      return "Absent";
    case alarms::Test::kLags:
      return "Lags";
    case alarms::Test::kLeads:
      return "Leads";
  }
  return "";
}

std::string Pretty(const alarms::Evaluator::State& state) {
  const alarms::Condition& first = state.rule.conditions.front();
  const std::string value =
      std::isnan(state.value) ? std::string("nothing") : fmt::format("{}", state.value);
  return fmt::format("{} : {}{} = {} {} {} {}", state.rule.name, first.metric,
                     state.help.empty() ? "" : fmt::format(" ({})", state.help), value,
                     state.counter ? "COUNTER" : "GAUGE", ToString(first.test), first.bound);
}

// Members up to `pretty` are metric-proxy's; the rest are ours.
void WriteAlarm(const AlarmState& alarm, JsonWriter& json) {
  const alarms::Evaluator::State& state = alarm.state;
  const alarms::Condition& first = state.rule.conditions.front();
  json.BeginObject().Field("name", state.rule.name);
  json.Field("metric", SeriesName(first.metric, state.tags));
  json.Key("operator").BeginObject().Field(OperatorName(first.test), first.bound).EndObject();
  json.Field("current", state.value).Field("active", state.raised);
  json.Field("pretty", Pretty(state));
  json.Field("severity", ToString(state.rule.severity)).Field("rule", ToText(state.rule));
  json.Field("text", state.text).Field("since", state.since);
  json.Field("value", std::isnan(state.value) ? "" : alarms::Quantity(state.value, state.unit));
  if (!alarm.host.empty()) json.Field("node", alarm.host);
  if (state.owner.rank != Owner::kNobody) json.Field("rank", state.owner.rank);
  json.EndObject();
}

// {"TARGET": [...]} for a step that runs here; main has its nodes beside it.
Response OfStep(const StepControl& control, const JobStep& id, const std::string& target,
                bool active_only) {
  const Result<std::vector<AlarmState>> alarms = control.Alarms(id);
  if (!alarms.ok()) return ErrorResponse(alarms.status());
  std::map<std::string, std::vector<const AlarmState*>> targets = {{target, {}}};
  for (const AlarmState& alarm : *alarms) {
    if (active_only && !alarm.state.raised) continue;
    const std::string* host = alarm.state.rule.conditions.front().tags.Find(alarms::kHostTag);
    const bool of_node = host != nullptr && target == kMainJob;
    targets[of_node ? std::string(kNodeJob) + *host : target].push_back(&alarm);
  }
  Response response;
  JsonWriter json(response.body);
  json.BeginObject();
  for (const auto& [name, list] : targets) {
    json.Key(name).BeginArray();
    for (const AlarmState* alarm : list) WriteAlarm(*alarm, json);
    json.EndArray();
  }
  json.EndObject();
  return response;
}

// The merged answers of several steps; a step without an answer is left out.
Task<Response> OfAll(const Context& context, const Request& request,
                     const std::vector<JobDescription>& steps, bool active_only) {
  std::vector<JobStep> ids;
  ids.reserve(steps.size());
  for (const JobDescription& step : steps) ids.push_back(step.id);
  std::vector<std::optional<Response>> answers = co_await ForwardToEach(context, request.path, ids);
  for (size_t i = 0; i < ids.size(); ++i) {
    if (answers[i]) continue;
    answers[i] = OfStep(*context.control, ids[i], ids[i].ToString(), active_only);
  }
  co_return Together(answers, "{}");
}

Task<Response> Write(const Context& context, const Request& request, bool active_only) {
  const std::string* target = request.Param("job");
  if (target == nullptr || *target == kMainJob) {
    const Result<std::vector<JobDescription>> steps = co_await RunningSteps(*context.history);
    if (!steps.ok()) co_return ErrorResponse(steps.status());
    if (steps->size() > 1) co_return co_await OfAll(context, request, *steps, active_only);
  }
  const std::string name = target == nullptr ? std::string(kMainJob) : *target;
  const Result<JobStep> id = co_await RunningStep(*context.history, name);
  if (!id.ok()) co_return ErrorResponse(id.status());
  std::optional<Response> forwarded =
      co_await Ask(*context.control, &StepControl::Forward, *id, request);
  if (forwarded) co_return *std::move(forwarded);
  co_return OfStep(*context.control, *id, name, active_only);
}

Task<Response> Active(const Context& context, const Request& request) {
  return Write(context, request, true);
}
Task<Response> ListAlarms(const Context& context, const Request& request) {
  return Write(context, request, false);
}

constexpr RouteParam kOfJobOrAll = {"job", "the step; every one that runs if absent"};
constexpr std::string_view kAlarmsOfTarget =
    R"({"type":"object","additionalProperties":)"
    R"({"type":"array","items":{"$ref":"#/components/schemas/Alarm"}}})";

constexpr RouteDoc kActive = {.about = "The alarms of a running step that are raised now",
                              .params = {kOfJobOrAll},
                              .answer = kAlarmsOfTarget,
                              .body = "{}",
                              .example = "?job=4712.0"};

constexpr Route kAlarmsRoutes[] = {
    {"/alarms", Waits<Active>, Waits<Active>, kActive},
    {"/alarms/", Waits<Active>, Waits<Active>, kActive},
    {"/alarms/list",
     Waits<ListAlarms>,
     Waits<ListAlarms>,
     {.about = "The alarm rules of a running step",
      .params = {kOfJobOrAll},
      .answer = kAlarmsOfTarget,
      .body = "{}",
      .example = "?job=4712.0"}},
    {"/alarms/add",
     Waits<Add>,
     Waits<Add>,
     {.about = "Watches an alarm rule",
      .params = {{"name", "of the rule", kText, true},
                 {"target", "the step, or Node: NAME; main is the only one that runs here"},
                 {"rule", "the rule as text: METRIC > 33 for 5s"},
                 {"metric", "or its parts: the metric"},
                 {"operation", "> >= < <= = or !="},
                 {"value", "what the metric is compared with", R"({"type":"number"})"}},
      .answer = "#Done",
      .body = "#NewAlarm",
      .example = "?name=hot&target=4712.0&rule=node_load1%20%3E%2033",
      .example_body = R"({"name": "My Alarm", "target": "4712.0", "metric": "node_load1", )"
                      R"("operation": ">", "value": 33})",
      .changes = true}},
    {"/alarms/del",
     Waits<Delete>,
     Waits<Delete>,
     {.about = "Forgets an alarm rule",
      .params = {{"name", "of the rule", kText, true},
                 {"targetjob", "the step, or Node: NAME; main is the only one that runs here"},
                 {"target", "the same"}},
      .answer = "#Done",
      .body = "#OldAlarm",
      .example = "?name=hot&targetjob=4712.0",
      .example_body = R"({"name": "My Alarm", "target": "4712.0"})",
      .changes = true}}};

}  // namespace

std::span<const Route> AlarmRoutes() { return kAlarmsRoutes; }

}  // namespace sonde::web
