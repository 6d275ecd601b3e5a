#include "web/opentsdb/ask.h"

#include <algorithm>
#include <cmath>

#include "profiles/json/parse.h"
#include "profiles/json/writer.h"
#include "web/http/json_input.h"
#include "web/opentsdb/request.h"

namespace sonde::web {
namespace {

namespace json = boost::json;

void WriteFilters(const QuerySpec& spec, JsonWriter& out) {
  out.Key("filters").BeginArray();
  for (const TagFilter& filter : spec.filters) {
    out.BeginObject().Field("type", FilterTypeName(filter.type)).Field("tagk", filter.key);
    out.Field("filter", filter.pattern).Field("groupBy", filter.group_by).EndObject();
  }
  out.EndArray();
}

Status Malformed(std::string_view what) {
  return {Code::kCorrupt, "the answer to a query: expected " + std::string(what)};
}

Status ReadPoint(const json::value& value, std::vector<Point>& out) {
  const json::array* pair = value.if_array();
  if (pair == nullptr || pair->size() != 2) return Malformed("pairs of time and value");
  const json::value& time = pair->at(0);
  const json::value& number = pair->at(1);
  constexpr int64_t kMost = kMaxQueryTime / kMillisecond;
  const int64_t ms = time.is_int64() ? time.get_int64() : -1;
  if (ms < 0 || ms > kMost) return Malformed("times in milliseconds");
  double read = std::nan("");
  if (number.is_number()) {
    read = number.to_number<double>();
  } else if (const json::string* text = number.if_string()) {
    if (*text != "NaN") read = *text == "-Infinity" ? -HUGE_VAL : HUGE_VAL;
  } else if (!number.is_null()) {
    return Malformed("numbers");
  }
  out.push_back({ms * kMillisecond, read});
  return {};
}

Status ReadResult(const json::value& value, QueryResult& out) {
  const json::object* object = value.if_object();
  if (object == nullptr) return Malformed("objects");
  const json::value* metric = object->if_contains("metric");
  const json::value* tags = object->if_contains("tags");
  const json::value* others = object->if_contains("aggregateTags");
  const json::value* points = object->if_contains("dps");
  if (metric == nullptr || tags == nullptr || others == nullptr || points == nullptr) {
    return Malformed("metric, tags, aggregateTags and dps");
  }
  SONDE_RETURN_IF_ERROR(ReadText(*metric, "metric", out.metric));
  if (!tags->is_object() || !others->is_array() || !points->is_array()) {
    return Malformed("tags, aggregateTags and dps as an object and arrays");
  }
  for (const auto& [key, tag] : tags->get_object()) {
    std::string text;
    SONDE_RETURN_IF_ERROR(ReadText(tag, "tags", text));
    out.tags.Set(View(key), text);
  }
  for (const json::value& other : others->get_array()) {
    SONDE_RETURN_IF_ERROR(ReadText(other, "aggregateTags", out.aggregate_tags.emplace_back()));
  }
  out.points.reserve(points->get_array().size());
  for (const json::value& point : points->get_array()) {
    SONDE_RETURN_IF_ERROR(ReadPoint(point, out.points));
  }
  return {};
}

}  // namespace

std::string QueryToJson(const QuerySpec& spec, const QueryGrid* grid) {
  std::string body;
  JsonWriter out(body);
  out.BeginObject().Field("start", spec.start / kMillisecond);
  out.Field("end", spec.end / kMillisecond);
  if (spec.downsample && spec.downsample->calendar != nullptr) {
    out.Field("timezone", spec.downsample->calendar->zone);
  }
  out.Field("msResolution", true).Field("noAnnotations", true);
  if (grid != nullptr) {
    out.Field("step", grid->step).Key("times").BeginArray();
    for (const Nanos time : grid->times) out.Value(time);
    out.EndArray();
  }
  out.Key("queries").BeginArray().BeginObject();
  out.Field("metric", spec.metric).Field("aggregator", ToString(spec.aggregator));
  if (spec.downsample) out.Field("downsample", DownsampleText(*spec.downsample));
  if (spec.rate) {
    const RateOptions& how = spec.rate_options;
    out.Field("rate", true).Key("rateOptions").BeginObject().Field("counter", how.counter);
    out.Field("counterMax", how.counter_max).Field("resetValue", how.reset_value);
    out.Field("dropResets", how.drop_resets).EndObject();
  }
  WriteFilters(spec, out);
  out.Field("explicitTags", spec.explicit_tags);
  out.EndObject().EndArray().EndObject();
  return body;
}

Result<std::vector<QueryResult>> ResultsFromJson(std::string_view body) {
  const Result<json::value> value = ParseJson(body, "the answer to a query");
  if (!value.ok()) return value.status();
  const json::array* list = value->if_array();
  if (list == nullptr) return Malformed("a list");
  std::vector<QueryResult> results(list->size());
  for (size_t i = 0; i < list->size(); ++i) {
    SONDE_RETURN_IF_ERROR(ReadResult(list->at(i), results[i]));
  }
  return results;
}

std::string HeaderValue(std::string text) {
  constexpr size_t kMost = 512;
  text.resize(std::min(text.size(), kMost));
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return text;
}

}  // namespace sonde::web
