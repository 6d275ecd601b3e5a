#include "web/proxy/snapshot.h"

#include <cmath>

#include "core/text/hostlist.h"
#include "web/http/negotiation.h"
#include "web/proxy/runs.h"

namespace sonde::web {
namespace {

std::string NodeList(const JobDescription& job) {
  std::vector<std::string> hosts;
  hosts.reserve(job.nodes.size());
  for (const NodeInfo& node : job.nodes) hosts.push_back(node.host);
  return CompressHosts(hosts);
}

// metric-proxy keeps values of a gauge from which a reader computes its mean, total / hits: here
// the mean over ticks of the step's number.
void WriteGauge(const FootprintEntry& entry, JsonWriter& json) {
  json.BeginObject().Key("Gauge").BeginObject();
  json.Field("min", entry.min).Field("max", entry.max);
  json.Field("hits", entry.ticks);
  json.Field("total", entry.mean * static_cast<double>(entry.ticks));
  json.EndObject().EndObject();
}

bool HasNumber(const FootprintEntry& entry) {
  if (IsCounting(entry.series.metric.type)) return std::isfinite(entry.last);
  return std::isfinite(entry.mean) && std::isfinite(entry.min) && std::isfinite(entry.max);
}

void WriteEntry(const FootprintEntry& entry, Nanos time, JsonWriter& json) {
  const Metric& metric = entry.series.metric;
  json.BeginObject();
  json.Field("name", SeriesName(metric.name, entry.series.tags));
  json.Field("doc", metric.help);
  json.Key("ctype");
  if (IsCounting(metric.type)) {
    WriteCounter(time, entry.last, json);
  } else {
    WriteGauge(entry, json);
  }
  json.EndObject();
}

void WriteWalltime(const JobDescription& job, JsonWriter& json) {
  json.BeginObject().Field("name", kWalltime).Field("doc", "Duration of the step in seconds.");
  json.Key("ctype");
  WriteCounter(job.end, WalltimeOf(job), json);
  json.EndObject();
}

}  // namespace

void WriteDescription(const JobDescription& job, JsonWriter& json) {
  json.BeginObject();
  json.Field("jobid", job.id.ToString());
  json.Field("command", job.command);
  json.Field("size", job.expected_tasks);
  json.Field("nodelist", NodeList(job));
  json.Field("partition", job.partition);
  json.Field("cluster", job.cluster);
  json.Field("run_dir", job.workdir);
  json.Field("start_time", job.start / kSecond);
  json.Field("end_time", job.end / kSecond);
  json.Field("name", job.name);
  json.Field("user", job.user);
  json.Field("state", ToString(job.state));
  json.Field("nodes", job.expected_nodes);
  json.Field("level", job.level);
  json.Field("period", static_cast<double>(job.period) / kSecond);
  json.Field("samples_expected", job.coverage.expected);
  json.Field("samples", job.coverage.got);
  json.Field("samples_skipped", job.coverage.skipped);
  json.Key("figures").BeginArray();
  for (const Figure& figure : job.figures) {
    json.BeginObject().Field("name", figure.name).Field("value", figure.value);
    json.Field("unit", figure.unit).EndObject();
  }
  json.EndArray().EndObject();
}

void MarkFinal(const JobDescription& job, Response& response) {
  if (job.end == 0) return;
  response.etag = ETagOf(response.body);
  response.last_modified = job.end;
}

void WriteCounter(Nanos time, double value, JsonWriter& json) {
  json.BeginObject().Key("Counter").BeginObject();
  json.Field("ts", time / kMicrosecond).Field("value", value);
  json.EndObject().EndObject();
}

void WriteSnapshot(const Profile& profile, Nanos now, JsonWriter& json) {
  json.BeginObject();
  json.Key("desc");
  WriteDescription(profile.job, json);
  json.Key("counters").BeginArray();
  const Nanos time = profile.job.end != 0 ? profile.job.end : now;
  bool has_walltime = false;  // of the application's own
  for (const FootprintEntry& entry : profile.footprint) {
    has_walltime = has_walltime || entry.series.metric.name == kWalltime;
    if (HasNumber(entry)) WriteEntry(entry, time, json);
  }
  if (profile.job.end != 0 && !has_walltime) WriteWalltime(profile.job, json);
  json.EndArray().EndObject();
}

}  // namespace sonde::web
