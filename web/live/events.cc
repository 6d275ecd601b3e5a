#include "web/live/events.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "web/http/http.h"
#include "web/opentsdb/handlers.h"

namespace sonde::web {
namespace {

double Seconds(Nanos time) { return static_cast<double>(time) / kSecond; }

// Begins an event whose data is one object, which the caller fills.
JsonWriter Begin(std::string_view name, std::string& out) {
  out.append("event: ").append(name).append("\ndata: ");
  JsonWriter json(out);
  json.BeginObject();
  return json;
}

void End(JsonWriter& json, std::string& out) {
  json.EndObject();
  out += "\n\n";
}

void WriteTags(const Tags& tags, JsonWriter& json) {
  json.Key("tags").BeginObject();
  for (const auto& [key, value] : tags.pairs()) json.Field(key, value);
  json.EndObject();
}

void WriteSeries(const TickEvent& event, JsonWriter& json) {
  json.Key("series").BeginArray();
  for (size_t i = 0; i < event.row.values.size(); ++i) {
    const Reduced& value = event.row.values[i];
    if (value.count == 0) continue;
    const Series& series = event.rows.series[i];
    json.BeginObject().Field("metric", series.metric.name);
    WriteTags(series.tags, json);
    json.Field("value", value.Value(series.metric.reduction)).Field("mean", value.Mean());
    json.Field("min", value.min).Field("max", value.max).Field("count", value.count);
    json.EndObject();
  }
  json.EndArray();
}

void WriteQueries(const TickEvent& event, JsonWriter& json) {
  json.Key("queries").BeginArray();
  for (size_t i = 0; i < event.queries.size(); ++i) {
    for (const QueryResult& result : event.queries[i]) {
      const auto at = std::lower_bound(result.points.begin(), result.points.end(), event.row.time,
                                       [](const Point& p, Nanos time) { return p.time < time; });
      if (at == result.points.end() || at->time != event.row.time) continue;
      json.BeginObject().Field("index", i).Field("metric", result.metric);
      WriteTags(result.tags, json);
      json.Field("value", at->value).EndObject();
    }
  }
  json.EndArray();
}

}  // namespace

void AppendStepEvent(std::string_view job, Nanos period, std::string& out) {
  JsonWriter json = Begin("step", out);
  json.Field("job", job).Field("period", Seconds(period));
  End(json, out);
}

void AppendTickEvent(const TickEvent& event, std::string& out) {
  out += fmt::format("id: {}\n", event.row.time);
  JsonWriter json = Begin("tick", out);
  json.Field("job", event.job).Field("time", Seconds(event.row.time));
  WriteSeries(event, json);
  WriteQueries(event, json);
  End(json, out);
}

void AppendLostEvent(const LostTicks& lost, std::string& out) {
  JsonWriter json = Begin("lost", out);
  json.Field("job", lost.job).Field("ticks", lost.ticks);
  json.Field("from", Seconds(lost.from)).Field("to", Seconds(lost.to));
  End(json, out);
}

void AppendAlarmEvent(std::string_view job, const AlarmState& alarm, bool active,
                      std::string& out) {
  const alarms::Evaluator::State& state = alarm.state;
  JsonWriter json = Begin("alarm", out);
  json.Field("job", job).Field("name", state.rule.name).Field("active", active);
  WriteTags(state.tags, json);
  json.Field("severity", ToString(state.rule.severity)).Field("text", state.text);
  json.Field("since", Seconds(state.since));
  if (!alarm.host.empty()) json.Field("node", alarm.host);
  if (state.owner.rank != Owner::kNobody) json.Field("rank", state.owner.rank);
  End(json, out);
}

void AppendNoteEvent(const Note& note, std::string& out) {
  out += "event: note\ndata: ";
  JsonWriter json(out);
  WriteNote(note, json);
  out += "\n\n";
}

void AppendErrorEvent(const Status& status, std::string& out) {
  out.append("event: problem\ndata: ").append(ErrorResponse(status).body).append("\n\n");
}

void AppendEndEvent(std::string_view job, std::string& out) {
  JsonWriter json = Begin("end", out);
  json.Field("job", job).Field("profile", fmt::format("/api/v1/profile?job={}", job));
  json.Field("message",
             "the step has ended; its profile is in the archive: sonde serve, sonde show");
  End(json, out);
}

}  // namespace sonde::web
