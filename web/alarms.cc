// /alarms, /alarms/list, /alarms/add, /alarms/del: the alarm rules of a running step, in the shapes
// of metric-proxy. Its target "main" is the only step that runs here, and so is one that is not
// named.
#include <fmt/format.h>

#include <cmath>

#include "profiles/json_parse.h"
#include "profiles/json_writer.h"
#include "series/alarm_text.h"
#include "web/router.h"

namespace sonde::web {
namespace {

constexpr size_t kMaxJobs = 1000;
constexpr std::string_view kMain = "main";

Result<JobStep> StepOf(const Context& context, std::string_view target) {
  if (!target.empty() && target != kMain) return JobStep::Parse(target);
  const Result<std::vector<JobDescription>> jobs = context.source->Jobs(kMaxJobs);
  if (!jobs.ok()) return jobs.status();
  const JobDescription* running = nullptr;
  for (const JobDescription& job : *jobs) {
    if (job.end != 0) continue;
    if (running != nullptr) {
      return Status(Code::kInvalid, "several steps run: name one as the target");
    }
    running = &job;
  }
  if (running == nullptr) return Status(Code::kNotFound, "no step runs");
  return running->id;
}

// What a request says, by parameters or by a JSON body: texts, and numbers as texts.
class Fields {
 public:
  static Result<Fields> Of(const Request& request) {
    Fields fields;
    fields.request_ = &request;
    if (request.method != Method::kPost) return fields;
    Result<boost::json::value> body = ParseJson(request.body, "the body");
    if (!body.ok()) return body.status();
    if (!body->is_object()) return Status(Code::kInvalid, "the body: expected an object");
    fields.body_ = *std::move(body);
    return fields;
  }

  // "" if it is not there.
  Result<std::string> Text(std::string_view name) const {
    if (body_.is_null()) {
      const std::string* text = request_->Param(name);
      return text == nullptr ? std::string() : *text;
    }
    const boost::json::value* value = body_.get_object().if_contains(name);
    if (value == nullptr || value->is_null()) return std::string();
    if (value->is_string()) return std::string(value->get_string());
    if (value->is_number()) return fmt::format("{}", value->to_number<double>());
    return Status(Code::kInvalid, fmt::format("{}: expected a text or a number", name));
  }

 private:
  const Request* request_ = nullptr;
  boost::json::value body_;  // null: there is none
};

// metric-proxy's members as the text of a rule; what they say goes through the parser like any
// other text, and so cannot say more than a rule can.
Result<std::string> RuleText(const Fields& fields) {
  Result<std::string> rule = fields.Text("rule");
  if (!rule.ok() || !rule->empty()) return rule;
  std::string text;
  for (const std::string_view name : {"metric", "operation", "value"}) {
    const Result<std::string> part = fields.Text(name);
    if (!part.ok()) return part;
    if (part->empty()) {
      return Status(Code::kInvalid,
                    R"(expected {"name": ..., "target": "main", "metric": ..., "operation": ">", )"
                    R"("value": 33}, or {"name": ..., "rule": "METRIC > 33 for 5s"})");
    }
    text += (text.empty() ? "" : " ") + *part;
  }
  return text;
}

void Done(std::string_view operation, const JobStep& id, const std::string& name,
          const Reply& reply) {
  Response response;
  JsonWriter json(response.body);
  json.BeginObject().Field("operation", operation).Field("success", true);
  json.Field("job", id.ToString()).Field("name", name).EndObject();
  reply(std::move(response));
}

Status TryAdd(const Context& context, const Request& request, JobStep& id, std::string& name) {
  const Result<Fields> fields = Fields::Of(request);
  if (!fields.ok()) return fields.status();
  const Result<std::string> given = fields->Text("name");
  const Result<std::string> target = fields->Text("target");
  const Result<std::string> text = RuleText(*fields);
  for (const auto* part : {&given, &target, &text}) {
    if (!part->ok()) return part->status();
  }
  name = *given;
  const Result<alarms::Rule> rule = alarms::ParseRule(name, *text);
  if (!rule.ok()) return rule.status();
  const Result<JobStep> step = StepOf(context, *target);
  if (!step.ok()) return step.status();
  id = *step;
  const Status added = context.source->AddAlarm(id, *rule);
  if (added.code() != Code::kBusy) return added;
  return {Code::kInvalid, std::string(added.message())};  // it is the request that has to change
}

Status TryDelete(const Context& context, const Request& request, JobStep& id, std::string& name) {
  const Result<Fields> fields = Fields::Of(request);
  if (!fields.ok()) return fields.status();
  const Result<std::string> given = fields->Text("name");
  Result<std::string> target = fields->Text("targetjob");
  if (target.ok() && target->empty()) target = fields->Text("target");
  if (!given.ok()) return given.status();
  if (!target.ok()) return target.status();
  if (given->empty()) return {Code::kInvalid, "the name of the alarm is needed"};
  name = *given;
  const Result<JobStep> step = StepOf(context, *target);
  if (!step.ok()) return step.status();
  id = *step;
  return context.source->RemoveAlarm(id, name);
}

void Add(const Context& context, const Request& request, Reply reply) {
  JobStep id;
  std::string name;
  const Status status = TryAdd(context, request, id, name);
  if (!status.ok()) return reply(ErrorResponse(status));
  Done("add", id, name, reply);
}

void Delete(const Context& context, const Request& request, Reply reply) {
  JobStep id;
  std::string name;
  const Status status = TryDelete(context, request, id, name);
  if (!status.ok()) return reply(ErrorResponse(status));
  Done("del", id, name, reply);
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

void Write(const Context& context, const Request& request, bool active_only, const Reply& reply) {
  const std::string* target = request.Param("job");
  const Result<JobStep> id = StepOf(context, target == nullptr ? kMain : *target);
  if (!id.ok()) return reply(ErrorResponse(id.status()));
  const Result<std::vector<AlarmState>> alarms = context.source->Alarms(*id);
  if (!alarms.ok()) return reply(ErrorResponse(alarms.status()));
  Response response;
  JsonWriter json(response.body);
  json.BeginObject().Key(target == nullptr ? std::string(kMain) : *target).BeginArray();
  for (const AlarmState& alarm : *alarms) {
    if (alarm.state.raised || !active_only) WriteAlarm(alarm, json);
  }
  json.EndArray().EndObject();
  reply(std::move(response));
}

void Active(const Context& context, const Request& request, Reply reply) {
  Write(context, request, true, reply);
}
void List(const Context& context, const Request& request, Reply reply) {
  Write(context, request, false, reply);
}

constexpr Route kRoutes[] = {{"/alarms", Active, Active},
                             {"/alarms/list", List, List},
                             {"/alarms/add", Add, Add},
                             {"/alarms/del", Delete, Delete}};

}  // namespace

std::span<const Route> AlarmRoutes() { return kRoutes; }

}  // namespace sonde::web
