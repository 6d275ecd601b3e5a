#include "cli/top/questions.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/monotonic_resource.hpp>
#include <boost/json/value.hpp>
#include <cmath>

#include "profiles/json/parse.h"
#include "profiles/json/writer.h"

namespace sonde::cli::top {
namespace {

namespace json = boost::json;

constexpr size_t kMostText = 4096;

void WriteFilter(JsonWriter& w, std::string_view type, std::string_view key, std::string_view text,
                 bool group) {
  w.BeginObject().Field("type", type).Field("tagk", key).Field("filter", text);
  w.Field("groupBy", group).EndObject();
}

void WriteWanted(JsonWriter& w, const Wanted& wanted, const Span& span, const std::string& hosts) {
  w.BeginObject().Field("metric", wanted.metric);
  const bool rate = wanted.counter && !span.latest;
  w.Field("aggregator", wanted.mean ? "avg" : span.latest ? "max" : "sum").Field("rate", rate);
  if (span.all) {
    w.Field("downsample", "0all-max");
  } else if (span.interval > 0) {
    w.Field("downsample",
            fmt::format("{}ms-{}", span.interval / kMillisecond, wanted.counter ? "max" : "avg"));
  }
  w.Key("filters").BeginArray();
  if (!hosts.empty()) {
    WriteFilter(w, hosts == "*" ? "wildcard" : "literal_or", "host", hosts, true);
  }
  for (const std::string& key : wanted.by) WriteFilter(w, "wildcard", key, "*", true);
  if (wanted.without_loopback) WriteFilter(w, "not_literal_or", "device", "lo", false);
  w.EndArray().EndObject();
}

std::string TextIn(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  const json::string* text = value == nullptr ? nullptr : value->if_string();
  if (text == nullptr) return "";
  return std::string(text->data(), std::min(text->size(), kMostText));
}

double NumberIn(const json::value& value) {
  return value.is_number() ? value.to_number<double>() : kNoValue;
}

Status NotAsExpected(std::string_view what) {
  return {
      Code::kCorrupt,
      fmt::format("read the head's answer: expected {}; is it another version of Sonde?", what)};
}

// A [time in ms, value] of untrusted JSON; values that are missing are passed over.
void ReadPoint(const json::value& value, Line& line) {
  const json::array* pair = value.if_array();
  if (pair == nullptr || pair->size() != 2) return;
  const double time = NumberIn((*pair)[0]);
  const double number = NumberIn((*pair)[1]);
  constexpr double kLatest = 9e12;  // ms, which Nanos hold
  if (!(time >= 0 && time < kLatest) || std::isnan(number)) return;
  line.points.emplace_back(static_cast<Nanos>(time) * kMillisecond, number);
}

}  // namespace

std::string QueryBody(const std::vector<Wanted>& wanted, const Span& span,
                      const std::vector<std::string>& hosts, bool by_host) {
  std::string body;
  JsonWriter w(body);
  w.BeginObject();
  if (span.ago > 0) {
    w.Field("start", fmt::format("{}ms-ago", span.ago / kMillisecond));
  } else {
    w.Field("start", std::max<Nanos>(span.start / kMillisecond, 0));
  }
  w.Field("msResolution", true).Field("noAnnotations", true);
  w.Key("queries").BeginArray();
  const std::string of =
      !hosts.empty() ? fmt::format("{}", fmt::join(hosts, "|")) : std::string(by_host ? "*" : "");
  for (const Wanted& one : wanted) WriteWanted(w, one, span, of);
  w.EndArray().EndObject();
  return body;
}

Result<std::vector<Line>> ParseLines(std::string_view answer) {
  json::monotonic_resource memory(std::max<size_t>(answer.size(), 1024));
  const Result<json::value> value = ParseJson(answer, "the head's answer", &memory);
  if (!value.ok()) return value.status();
  const json::array* results = value->if_array();
  if (results == nullptr) return NotAsExpected("a list of results");
  std::vector<Line> lines;
  lines.reserve(results->size());
  for (const json::value& result : *results) {
    const json::object* object = result.if_object();
    if (object == nullptr) return NotAsExpected("results that are objects");
    Line line;
    line.metric = TextIn(*object, "metric");
    const json::value* tags = object->if_contains("tags");
    if (const json::object* all = tags == nullptr ? nullptr : tags->if_object()) {
      line.host = TextIn(*all, "host");
      line.task = TextIn(*all, "task");
      line.cpu = TextIn(*all, "cpu");
      line.mode = TextIn(*all, "mode");
    }
    const json::value* points = object->if_contains("dps");
    const json::array* list = points == nullptr ? nullptr : points->if_array();
    if (list == nullptr) return NotAsExpected("points in a list");
    line.points.reserve(list->size());
    for (const json::value& point : *list) ReadPoint(point, line);
    lines.push_back(std::move(line));
  }
  return lines;
}

Result<std::vector<Alarm>> ParseAlarms(std::string_view answer) {
  const Result<json::value> value = ParseJson(answer, "the head's answer");
  if (!value.ok()) return value.status();
  const json::object* targets = value->if_object();
  if (targets == nullptr) return NotAsExpected("an object of alarms");
  std::vector<Alarm> alarms;
  for (const auto& [target, list] : *targets) {
    const json::array* all = list.if_array();
    if (all == nullptr) return NotAsExpected("alarms in a list");
    for (const json::value& one : *all) {
      const json::object* object = one.if_object();
      if (object == nullptr) return NotAsExpected("alarms that are objects");
      const json::value* active = object->if_contains("active");
      if (active == nullptr || *active != json::value(true)) continue;
      Alarm alarm{TextIn(*object, "name"),
                  TextIn(*object, "severity"),
                  TextIn(*object, "text"),
                  TextIn(*object, "node"),
                  "",
                  0};
      if (const json::value* rank = object->if_contains("rank"); rank && rank->is_number()) {
        alarm.rank = fmt::format("{:.0f}", NumberIn(*rank));
      }
      if (const json::value* since = object->if_contains("since"); since && since->is_number()) {
        const double time = NumberIn(*since);
        if (time > 0 && time < 9e18) alarm.since = static_cast<Nanos>(time);
      }
      alarms.push_back(std::move(alarm));
    }
  }
  return alarms;
}

}  // namespace sonde::cli::top
