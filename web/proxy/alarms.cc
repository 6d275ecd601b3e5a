// /alarms, /alarms/list, /alarms/add, /alarms/del: the alarm rules of a running step, in the shapes
// of metric-proxy. Its target "main" is the only step that runs here, and so is one that is not
// named; of several all are listed, each under its name.
#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <mutex>

#include "profiles/json_writer.h"
#include "series/alarm_text.h"
#include "web/json_input.h"
#include "web/router.h"
#include "web/running_step.h"

namespace sonde::web {
namespace {

// What a request says, by parameters or by a JSON body: texts, and numbers as texts.
struct Fields {
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

Status ReadField(const boost::json::value& value, std::string_view key, Fields& fields) {
  std::string* field = fields.Find(key);
  // What a rule can say besides, such as its severity, is said in its text.
  if (field == nullptr) return NoSuchField(key, kFields);
  if (value.is_null()) return {};
  if (value.is_number()) {
    *field = fmt::format("{}", value.to_number<double>());
    return {};
  }
  return value.is_string() ? ReadText(value, key, *field) : Wrong(key, "a text or a number");
}

Result<Fields> FieldsOf(const Request& request) {
  Fields fields;
  if (request.method != Method::kPost) {
    for (const auto& [key, value] : request.params) {
      std::string* field = fields.Find(key);
      if (field != nullptr && field->empty()) *field = value;
    }
    return fields;
  }
  return WithObject<Fields>(request.body, [&](const boost::json::object& object) -> Result<Fields> {
    for (const auto& [key, value] : object) {
      SONDE_RETURN_IF_ERROR(ReadField(value, View(key), fields));
    }
    return fields;
  });
}

// metric-proxy's members as the text of a rule; what they say goes through the parser like any
// other text, and so cannot say more than a rule can.
Result<std::string> RuleText(const Fields& fields) {
  if (!fields.rule.empty()) return fields.rule;
  if (fields.metric.empty() || fields.operation.empty() || fields.value.empty()) {
    return Status(Code::kInvalid,
                  R"(expected {"name": ..., "target": "main", "metric": ..., "operation": ">", )"
                  R"("value": 33}, or {"name": ..., "rule": "METRIC > 33 for 5s"})");
  }
  return fields.metric + " " + fields.operation + " " + fields.value;
}

void Done(std::string_view operation, const JobStep& id, const std::string& name,
          const Reply& reply) {
  Response response;
  JsonWriter json(response.body);
  json.BeginObject().Field("operation", operation).Field("success", true);
  json.Field("job", id.ToString()).Field("name", name).EndObject();
  reply(std::move(response));
}

// What is to be done, and in which step.
struct Order {
  JobStep id;
  std::string name;
  alarms::Rule rule;  // to be added
};

Result<Order> ReadAdd(const Context& context, const Request& request) {
  const Result<Fields> fields = FieldsOf(request);
  if (!fields.ok()) return fields.status();
  const Result<std::string> text = RuleText(*fields);
  if (!text.ok()) return text.status();
  Result<alarms::Rule> rule = alarms::ParseRule(fields->name, *text);
  if (!rule.ok()) return rule.status();
  const Result<JobStep> step = RunningStep(*context.source, fields->target);
  if (!step.ok()) return step.status();
  return Order{*step, fields->name, *std::move(rule)};
}

Result<Order> ReadDelete(const Context& context, const Request& request) {
  const Result<Fields> fields = FieldsOf(request);
  if (!fields.ok()) return fields.status();
  if (fields->name.empty()) return Status(Code::kInvalid, "the name of the alarm is needed");
  const std::string& target = fields->targetjob.empty() ? fields->target : fields->targetjob;
  const Result<JobStep> step = RunningStep(*context.source, target);
  if (!step.ok()) return step.status();
  return Order{*step, fields->name, {}};
}

void Add(const Context& context, const Request& request, Reply reply) {
  const Result<Order> order = ReadAdd(context, request);
  if (!order.ok()) return reply(ProxyError(order.status()));
  if (context.source->Forward(order->id, request, reply)) return;
  Status added = context.source->AddAlarm(order->id, order->rule);
  // A name that is taken: it is the request that has to change.
  if (added.code() == Code::kBusy) added = {Code::kInvalid, std::string(added.message())};
  if (!added.ok()) return reply(ProxyError(added));
  Done("add", order->id, order->name, reply);
}

void Delete(const Context& context, const Request& request, Reply reply) {
  const Result<Order> order = ReadDelete(context, request);
  if (!order.ok()) return reply(ProxyError(order.status()));
  if (context.source->Forward(order->id, request, reply)) return;
  const Status removed = context.source->RemoveAlarm(order->id, order->name);
  if (!removed.ok()) return reply(ProxyError(removed));
  Done("del", order->id, order->name, reply);
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

// Up to `pretty` as metric-proxy has it; the rest is ours.
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

// {"TARGET": [...]} of one step.
void WriteStep(const Context& context, const Request& request, const JobStep& id,
               const std::string& target, bool active_only, const Reply& reply) {
  if (context.source->Forward(id, request, reply)) return;
  const Result<std::vector<AlarmState>> alarms = context.source->Alarms(id);
  if (!alarms.ok()) return reply(ProxyError(alarms.status()));
  Response response;
  JsonWriter json(response.body);
  json.BeginObject().Key(target).BeginArray();
  for (const AlarmState& alarm : *alarms) {
    if (alarm.state.raised || !active_only) WriteAlarm(alarm, json);
  }
  json.EndArray().EndObject();
  reply(std::move(response));
}

// The answers of several steps, put together; a step that gives none is left out.
struct Together {
  std::mutex mutex;
  size_t left = 0;
  std::string body;
  Reply reply;

  void Put(const Response& response) {
    const std::lock_guard lock(mutex);
    const std::string& one = response.body;
    if (response.status == 200 && one.size() > 2 && one.front() == '{' && one.back() == '}') {
      body += (body.empty() ? "" : ",") + one.substr(1, one.size() - 2);
    }
    if (--left != 0) return;
    Response all;
    all.body = "{" + body + "}";
    reply(std::move(all));
  }
};

void WriteAll(const Context& context, const Request& request,
              const std::vector<JobDescription>& steps, bool active_only, Reply reply) {
  const auto together = std::make_shared<Together>();
  together->left = steps.size();
  together->reply = std::move(reply);
  for (const JobDescription& step : steps) {
    const std::string id = step.id.ToString();
    Request one;
    if (!ParseTarget(request.path + "?job=" + id, one).ok()) one.path = request.path;
    WriteStep(context, one, step.id, id, active_only,
              [together](const Response& response) { together->Put(response); });
  }
}

void Write(const Context& context, const Request& request, bool active_only, const Reply& reply) {
  const std::string* target = request.Param("job");
  if (target == nullptr || *target == kMainJob) {
    const Result<std::vector<JobDescription>> steps = RunningSteps(*context.source);
    if (!steps.ok()) return reply(ProxyError(steps.status()));
    if (steps->size() > 1) return WriteAll(context, request, *steps, active_only, reply);
  }
  const std::string name = target == nullptr ? std::string(kMainJob) : *target;
  const Result<JobStep> id = RunningStep(*context.source, name);
  if (!id.ok()) return reply(ProxyError(id.status()));
  WriteStep(context, request, *id, name, active_only, reply);
}

void Active(const Context& context, const Request& request, Reply reply) {
  Write(context, request, true, reply);
}
void List(const Context& context, const Request& request, Reply reply) {
  Write(context, request, false, reply);
}

constexpr RouteParam kOfJob = {"job", "the step; every one that runs if absent"};
constexpr std::string_view kAlarmsOfTarget =
    R"({"type":"object","additionalProperties":)"
    R"({"type":"array","items":{"$ref":"#/components/schemas/Alarm"}}})";

constexpr RouteDoc kActive = {.about = "The alarms of a running step that are raised now",
                              .params = {kOfJob},
                              .answer = kAlarmsOfTarget,
                              .body = "{}",
                              .example = "?job=4712.0"};

constexpr Route kRoutes[] = {
    {"/alarms", Active, Active, kActive},
    {"/alarms/", Active, Active, kActive},
    {"/alarms/list",
     List,
     List,
     {.about = "The alarm rules of a running step",
      .params = {kOfJob},
      .answer = kAlarmsOfTarget,
      .body = "{}",
      .example = "?job=4712.0"}},
    {"/alarms/add",
     Add,
     Add,
     {.about = "Watches an alarm rule",
      .params = {{"name", "of the rule", kText, true},
                 {"target", "the step; main is the only one that runs here"},
                 {"rule", "the rule as text: METRIC > 33 for 5s"},
                 {"metric", "or its parts: the metric"},
                 {"operation", "> >= < <= = or !="},
                 {"value", "what the metric is compared with", R"({"type":"number"})"}},
      .answer = "#Done",
      .body = "#NewAlarm",
      .example = "?name=hot&target=4712.0&rule=node_load1%20%3E%2033",
      .example_body = R"({"name": "My Alarm", "target": "4712.0", "metric": "node_load1", )"
                      R"("operation": ">", "value": 33})"}},
    {"/alarms/del",
     Delete,
     Delete,
     {.about = "Forgets an alarm rule",
      .params = {{"name", "of the rule", kText, true},
                 {"targetjob", "the step; main is the only one that runs here"},
                 {"target", "the same"}},
      .answer = "#Done",
      .body = "#OldAlarm",
      .example = "?name=hot&targetjob=4712.0",
      .example_body = R"({"name": "My Alarm", "target": "4712.0"})"}}};

}  // namespace

std::span<const Route> AlarmRoutes() { return kRoutes; }

}  // namespace sonde::web
