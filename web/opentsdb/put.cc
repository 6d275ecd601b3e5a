// POST /api/put: stores points in a store that takes them.
#include <fmt/core.h>

#include <charconv>
#include <cmath>

#include "web/http/json_input.h"
#include "web/opentsdb/handlers.h"
#include "web/opentsdb/request.h"
#include "web/source/point_sink.h"

namespace sonde::web {
namespace {

namespace json = boost::json;

constexpr Nanos kLastTime = Nanos{9'000'000'000} * kSecond;  // a Nanos holds it

// As in OpenTSDB's IncomingDataPoint: a number may also be a text.
Status ReadTimestamp(const json::value& value, Nanos& out) {
  const Status invalid(Code::kInvalid, "Invalid timestamp");
  int64_t number = 0;
  if (value.is_int64()) {
    number = value.get_int64();
  } else if (const json::string* text = value.if_string()) {
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
    if (error != std::errc() || end != text->data() + text->size()) return invalid;
  } else {
    return invalid;
  }
  constexpr int64_t kLastInSeconds = 9'999'999'999;  // ten digits
  const Nanos unit = number > kLastInSeconds ? kMillisecond : kSecond;
  if (number <= 0 || number > kLastTime / unit) return invalid;
  out = number * unit;
  return {};
}

Status ParseValue(std::string_view text, PutPoint& point) {
  if (text.empty()) return {Code::kInvalid, "Empty value"};
  point.integer = text.find_first_of(".eEnN") == std::string_view::npos;
  if (text.starts_with('+')) text.remove_prefix(1);
  const char* end = text.data() + text.size();
  std::from_chars_result read{};
  if (point.integer) {
    read = std::from_chars(text.data(), end, point.whole);
    point.value = static_cast<double>(point.whole);
  } else {
    read = std::from_chars(text.data(), end, point.value);
  }
  if (read.ec != std::errc() || read.ptr != end) {
    return {Code::kInvalid, "Unable to parse value to a number"};
  }
  if (!std::isfinite(point.value)) {
    return {Code::kInvalid, fmt::format("value is NaN or Infinite: {}", text)};
  }
  return {};
}

Status ReadValue(const json::value& value, PutPoint& point) {
  if (value.is_null()) return {Code::kInvalid, "Empty value"};
  if (const json::string* text = value.if_string()) return ParseValue(View(*text), point);
  if (value.is_int64()) {
    point.whole = value.get_int64();
    point.value = static_cast<double>(point.whole);
    point.integer = true;
    return {};
  }
  if (!value.is_double()) return {Code::kInvalid, "Unable to parse value to a number"};
  point.value = value.get_double();
  if (std::isfinite(point.value)) return {};
  return {Code::kInvalid, "value is NaN or Infinite"};
}

Status ReadTagMap(const json::value* value, Tags& tags) {
  const json::object* object = value == nullptr ? nullptr : value->if_object();
  if (object == nullptr || object->empty()) return {Code::kInvalid, "Missing tags"};
  for (const auto& [key, tag] : *object) {
    const json::string* text = tag.if_string();
    if (text == nullptr) return {Code::kInvalid, "Invalid tag value: expected a text"};
    tags.Set(View(key), View(*text));
  }
  return {};
}

// The checks in the order of OpenTSDB's.
Result<PutPoint> ReadPoint(const json::value& value) {
  const json::object* object = value.if_object();
  if (object == nullptr) {
    return Status(Code::kInvalid, "Unexpected null datapoint encountered in set.");
  }
  PutPoint point;
  const json::value* metric = object->if_contains("metric");
  if (metric == nullptr || !metric->is_string() || metric->get_string().empty()) {
    return Status(Code::kInvalid, "Metric name was empty");
  }
  point.metric = View(metric->get_string());
  const json::value* time = object->if_contains("timestamp");
  SONDE_RETURN_IF_ERROR(ReadTimestamp(time == nullptr ? json::value() : *time, point.time));
  const json::value* number = object->if_contains("value");
  const Status read = ReadValue(number == nullptr ? json::value() : *number, point);
  if (!read.ok() && read.message() == "Empty value") return read;
  SONDE_RETURN_IF_ERROR(ReadTagMap(object->if_contains("tags"), point.tags));
  if (!read.ok()) return read;
  return point;
}

// As received; boost::json would write numbers that are not JSON.
void Echo(const json::value& value, JsonWriter& out) {
  if (const json::object* object = value.if_object()) {
    out.BeginObject();
    for (const auto& [key, field] : *object) {
      out.Key(View(key));
      Echo(field, out);
    }
    out.EndObject();
  } else if (const json::array* list = value.if_array()) {
    out.BeginArray();
    for (const json::value& item : *list) Echo(item, out);
    out.EndArray();
  } else if (const json::string* text = value.if_string()) {
    out.Value(View(*text));
  } else if (value.is_double()) {
    out.Value(value.get_double());
  } else {
    out.Raw(json::serialize(value));
  }
}

PutError ErrorOf(const json::value& point, const Status& why) {
  PutError error{"", std::string(why.message())};
  JsonWriter out(error.datapoint);
  Echo(point, out);
  return error;
}

void WriteErrors(const std::vector<PutError>& errors, JsonWriter& out) {
  out.Key("errors").BeginArray();
  for (const PutError& error : errors) {
    out.BeginObject().Key("datapoint").Raw(error.datapoint);
    out.Field("error", error.message).EndObject();
  }
  out.EndArray();
}

bool Has(const Request& request, std::string_view name) {
  const std::string* text = request.Param(name);
  return text != nullptr && *text != "false";
}

}  // namespace

Result<PutSummary> PutBody(std::string_view body, bool details,
                           const std::function<Status(PutPoint)>& put) {
  return WithJson<PutSummary>(body, [&](const json::value& value) -> Result<PutSummary> {
    const json::array* list = value.if_array();
    if (list == nullptr && !value.is_object()) {
      return Status(Code::kInvalid, "the body must be a datapoint or a list of them");
    }
    const size_t count = list == nullptr ? 1 : list->size();
    if (count == 0) return Status(Code::kInvalid, "No datapoints found in content");
    PutSummary summary;
    for (size_t i = 0; i < count; ++i) {
      const json::value& item = list == nullptr ? value : (*list)[i];
      Result<PutPoint> point = ReadPoint(item);
      const Status done = point.ok() ? put(*std::move(point)) : point.status();
      if (done.ok()) {
        ++summary.success;
        continue;
      }
      ++summary.failed;
      if (details) summary.errors.push_back(ErrorOf(item, done));
    }
    return summary;
  });
}

void PostPut(const Context& context, const Request& request, Reply reply) {
  PointSink* sink = context.sink;
  if (sink == nullptr) return reply(NothingIsPut());
  if (request.body.empty()) return reply(ErrorResponse(400, "Missing request content"));
  const bool details = Has(request, "details");
  const Result<PutSummary> summary =
      PutBody(request.body, details, [&](PutPoint point) { return sink->Put(std::move(point)); });
  if (!summary.ok()) return reply(ErrorResponse(summary.status()));
  Response response;
  if (!details && !Has(request, "summary")) {
    if (summary->failed == 0) {
      response.status = 204;
      return reply(std::move(response));
    }
    return reply(ErrorResponse(400, "One or more data points had errors",
                               "append \"details\" to the put request to see them"));
  }
  response.status = summary->failed == 0 ? 200 : 400;
  JsonWriter out(response.body);
  out.BeginObject().Field("success", summary->success).Field("failed", summary->failed);
  if (details) WriteErrors(summary->errors, out);
  out.EndObject();
  reply(std::move(response));
}

}  // namespace sonde::web
