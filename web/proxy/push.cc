// /push, /set and /accumulate: metrics of the application that come over HTTP, as metric-proxy
// takes them. In a running step they are recorded like those of libsonde; in the store of `sonde
// serve
// --ephemeral` each value is a point.
#include <fmt/core.h>

#include <charconv>
#include <cmath>

#include "core/text/names.h"
#include "web/http/json_input.h"
#include "web/proxy/operation.h"
#include "web/proxy/routes.h"
#include "web/route/waiting.h"
#include "web/source/running_step.h"

namespace sonde::web {
namespace {

namespace json = boost::json;
using Kind = PushedValue::Kind;

// A request's parameters or JSON body.
struct PushFields {
  std::string key, value, doc, job, type;

  std::string* Find(std::string_view name) {
    if (name == "key") return &key;
    if (name == "value") return &value;
    if (name == "doc") return &doc;
    if (name == "job") return &job;
    return name == "type" ? &type : nullptr;
  }
};

Result<PushFields> PushFieldsOf(const Request& request) {
  PushFields fields;
  if (request.method != Method::kPost) {
    for (const auto& [name, value] : request.params) {
      if (std::string* field = fields.Find(name)) *field = value;
    }
    return fields;
  }
  if (const std::string* job = request.Param("job")) fields.job = *job;
  return WithObject<PushFields>(
      request.body, [&](const json::object& object) -> Result<PushFields> {
        for (const auto& [name, value] : object) {
          std::string* field = fields.Find(View(name));
          if (field == nullptr) return NoSuchField(View(name), "key, value, doc, type or job");
          if (value.is_null()) continue;
          if (value.is_number()) {
            *field = fmt::format("{}", value.to_number<double>());
            continue;
          }
          SONDE_RETURN_IF_ERROR(ReadText(value, View(name), *field));
        }
        return fields;
      });
}

Status ReadValue(const std::string& text, double& out) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, out);
  if (error == std::errc() && stop == end && std::isfinite(out)) return {};
  return Wrong("value", "a number");
}

Result<PushedValue> ValueOf(const PushFields& fields, Kind kind) {
  Result<Series> series = ParsePushedKey(fields.key);
  if (!series.ok()) return series.status();
  PushedValue value;
  value.kind = kind;
  value.series = *std::move(series);
  if (!fields.type.empty() && fields.type != "counter" && fields.type != "gauge") {
    return Wrong("type", "counter or gauge");
  }
  if (fields.type == "gauge") value.series.metric.type = MetricType::kGauge;
  if (fields.doc.size() > kMaxPushedHelp || !names::IsPlainText(fields.doc)) {
    return Wrong("doc", fmt::format("a text of one line of at most {} bytes", kMaxPushedHelp));
  }
  value.series.metric.help = fields.doc;
  if (kind != Kind::kRegister) SONDE_RETURN_IF_ERROR(ReadValue(fields.value, value.value));
  return value;
}

Task<Response> Take(const Context& context, const Request& request, Kind kind,
                    std::string_view operation) {
  const Result<PushFields> fields = PushFieldsOf(request);
  if (!fields.ok()) co_return ErrorResponse(fields.status());
  const Result<PushedValue> value = ValueOf(*fields, kind);
  if (!value.ok()) co_return ErrorResponse(value.status());
  JobStep id;
  // The store has no steps.
  if (context.sink == nullptr) {
    const Result<JobStep> step = co_await RunningStep(*context.history, fields->job);
    if (!step.ok()) co_return ErrorResponse(step.status());
    id = *step;
    std::optional<Response> forwarded =
        co_await Ask(*context.control, &StepControl::Forward, id, request);
    if (forwarded) co_return *std::move(forwarded);
  }
  const Status pushed = context.control->Push(id, *value);
  if (!pushed.ok()) co_return ErrorResponse(pushed);
  co_return Success(operation);
}

Task<Response> Set(const Context& context, const Request& request) {
  return Take(context, request, Kind::kSet, "set");
}
Task<Response> Accumulate(const Context& context, const Request& request) {
  return Take(context, request, Kind::kAdd, "inc");
}
Task<Response> Push(const Context& context, const Request& request) {
  return Take(context, request, Kind::kRegister, "push");
}

constexpr RouteParam kKey = {"key", "the metric: NAME or NAME{key=\"value\",...}", kText, true};
constexpr RouteParam kValue = {"value", "a number", kText, true};
constexpr RouteParam kStep = {"job", "the step; needed where several run"};
constexpr std::string_view kPushed =
    R"({"type":"object","required":["key"],"properties":{"key":{"type":"string"},)"
    R"("value":{"type":["string","number"]},"doc":{"type":"string"},"job":{"type":"string"},)"
    R"("type":{"enum":["counter","gauge"]}}})";

constexpr Route kPushRoutes[] = {
    {"/push",
     Waits<Push>,
     Waits<Push>,
     {.about = "Registers a metric of the application, which begins at 0",
      .params = {kKey, {"doc", "what it is"}, {"type", "counter, or gauge"}, kStep},
      .answer = "#Told",
      .body = kPushed,
      .example = "?key=pushed_total&doc=Parts%20done.&job=4712.0",
      .example_body = R"({"key": "pushed_total", "doc": "Parts done.", "job": "4712.0"})",
      .changes = true}},
    {"/set",
     Waits<Set>,
     Waits<Set>,
     {.about = "Sets a metric that was registered by /push",
      .params = {kKey, kValue, kStep},
      .answer = "#Told",
      .body = kPushed,
      .example = "?key=pushed_total&value=3&job=4712.0",
      .example_body = R"({"key": "pushed_total", "value": "3", "job": "4712.0"})",
      .changes = true}},
    {"/accumulate",
     Waits<Accumulate>,
     Waits<Accumulate>,
     {.about = "Adds to a metric that was registered by /push",
      .params = {kKey, kValue, kStep},
      .answer = "#Told",
      .body = kPushed,
      .example = "?key=pushed_total&value=1&job=4712.0",
      .example_body = R"({"key": "pushed_total", "value": "1", "job": "4712.0"})",
      .changes = true}}};

}  // namespace

std::span<const Route> PushRoutes() { return kPushRoutes; }

}  // namespace sonde::web
