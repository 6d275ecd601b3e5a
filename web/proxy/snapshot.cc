#include "web/proxy/snapshot.h"

#include "core/text/hostlist.h"
#include "web/http/negotiation.h"

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
  json.Key("Gauge").BeginObject();
  json.Field("min", entry.min).Field("max", entry.max);
  json.Field("hits", entry.ticks);
  json.Field("total", entry.mean * static_cast<double>(entry.ticks));
  json.EndObject();
}

void WriteCounter(const FootprintEntry& entry, JsonWriter& json) {
  const Metric& metric = entry.series.metric;
  json.BeginObject();
  json.Field("name", SeriesName(metric.name, entry.series.tags));
  json.Field("doc", metric.help);
  json.Key("ctype").BeginObject();
  if (!IsCounting(metric.type)) {
    WriteGauge(entry, json);
  } else {
    json.Key("Counter").BeginObject().Field("value", entry.last).EndObject();
  }
  json.EndObject().EndObject();
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

void WriteSnapshot(const Profile& profile, JsonWriter& json) {
  json.BeginObject();
  json.Key("desc");
  WriteDescription(profile.job, json);
  json.Key("counters").BeginArray();
  for (const FootprintEntry& entry : profile.footprint) WriteCounter(entry, json);
  json.EndArray().EndObject();
}

}  // namespace sonde::web
