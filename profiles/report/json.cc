#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

#include "profiles/json/writer.h"
#include "profiles/model/hardware.h"
#include "profiles/report/calls.h"
#include "profiles/report/headline.h"
#include "profiles/report/moments.h"
#include "profiles/report/mpi_waiting.h"
#include "profiles/report/report.h"
#include "profiles/report/used.h"

namespace sonde {
namespace {

void WriteHeld(JsonWriter& w, std::string_view key, const Held& held) {
  w.Key(key).BeginObject().Field("value", held.value).Field("by", held.by).EndObject();
}

void WriteSummary(JsonWriter& w, const Summary& s) {
  w.BeginObject();
  w.Field("duration_seconds", s.duration).Field("measured_seconds", s.measured);
  w.Field("measured_tasks", s.measured_tasks).Field("cpu_seconds", s.cpu_seconds);
  w.Field("cpu_user_seconds", s.cpu_user).Field("cpu_system_seconds", s.cpu_system);
  w.Field("cpu_of_tasks", s.cpu_of_tasks).Field("cpu_of_nodes", s.cpu_of_nodes);
  w.Field("node_cpus", s.node_cpus);
  WriteHeld(w, "least_cpu_seconds", s.least_cpu);
  WriteHeld(w, "most_cpu_seconds", s.most_cpu);
  WriteHeld(w, "memory_peak_bytes", s.memory_peak);
  w.Field("memory_total_bytes", s.memory_total).Field("memory_of_node", s.memory_of_node);
  w.Field("memory_limit_bytes", s.memory_limit).Field("memory_of_limit", s.memory_of_limit);
  w.Field("network_received_bytes", s.network_received).Field("network_sent_bytes", s.network_sent);
  w.Field("disk_read_bytes", s.disk_read).Field("disk_written_bytes", s.disk_written);
  w.Field("task_read_bytes", s.task_read).Field("task_written_bytes", s.task_written);
  w.EndObject();
}

void WriteNode(JsonWriter& w, const NodeRow& row) {
  w.BeginObject().Field("host", row.host).Field("tasks", row.tasks);
  w.Field("cpu_seconds", row.cpu_seconds).Field("node_cpu_seconds", row.node_cpu_seconds);
  w.Field("memory_peak_bytes", row.memory_peak).Field("memory_total_bytes", row.memory_total);
  w.Field("memory_limit_bytes", row.memory_limit);
  w.Field("network_received_bytes", row.network_received);
  w.Field("network_sent_bytes", row.network_sent);
  w.Field("disk_read_bytes", row.disk_read).Field("disk_written_bytes", row.disk_written);
  w.Field("task_read_bytes", row.task_read).Field("task_written_bytes", row.task_written);
  w.Field("lost", row.lost).Field("note", row.note);
  w.EndObject();
}

void WriteAsked(JsonWriter& w, const Profile& profile, const Summary& summary, Nanos now) {
  w.BeginArray();
  for (const Used& one : AskedAndUsed(profile, summary, now)) {
    w.BeginObject().Field("what", one.what).Field("unit", one.unit);
    w.Field("asked", one.asked).Field("used", one.used).Field("text", one.text);
    w.EndObject();
  }
  w.EndArray();
}

// As far as the step's own counters tell; sonde energy says more.
void WriteEnergy(JsonWriter& w, const Profile& profile) {
  const HardwareSummary hardware = SummarizeHardware(profile);
  w.Key("energy").BeginObject().Field("step_joules", hardware.step_joules);
  w.Field("gpu_joules", hardware.gpu_joules).EndObject();
}

constexpr size_t kMostCallRows = 100;

// What a row has besides its name and calls.
struct CallColumn {
  std::string_view key;
  double CallRow::*number;
};
constexpr CallColumn kTimeColumns[] = {{"seconds", &CallRow::seconds}};
constexpr CallColumn kMpiColumns[] = {{"seconds", &CallRow::seconds},
                                      {"wait_seconds", &CallRow::waiting},
                                      {"sent_bytes", &CallRow::out},
                                      {"received_bytes", &CallRow::in}};
constexpr CallColumn kFileColumns[] = {{"seconds", &CallRow::seconds},
                                       {"written_bytes", &CallRow::out},
                                       {"read_bytes", &CallRow::in},
                                       {"median_bytes", &CallRow::median}};

void WriteCallRows(JsonWriter& w, std::string_view key, const std::vector<CallRow>& rows,
                   std::span<const CallColumn> columns) {
  w.Key(key).BeginArray();
  for (size_t i = 0; i < std::min(rows.size(), kMostCallRows); ++i) {
    const CallRow& row = rows[i];
    w.BeginObject().Field("name", row.name);
    if (!row.operation.empty()) w.Field("operation", row.operation);
    w.Field("calls", row.calls);
    for (const auto& [name, number] : columns) w.Field(name, row.*number);
    w.EndObject();
  }
  w.EndArray();
}

// Seconds of all tasks and threads.
void WriteCalls(JsonWriter& w, const Profile& profile, const Summary& summary) {
  const CallTimes times = TimesOfCalls(profile);
  const MpiWaiting waiting = WaitingInMpi(profile, TaskCount(profile, summary));
  w.Key("calls").BeginObject().Field("task_seconds", TaskSeconds(profile, summary));
  w.Field("mpi_seconds", times.mpi).Field("mpi_wait_seconds", times.mpi_waits);
  w.Key("mpi_waiting").BeginObject().Field("seconds", waiting.seconds);
  w.Field("slowest", waiting.slowest ? OwnerName(*waiting.slowest, profile.job) : "").EndObject();
  w.Field("file_seconds", times.files);
  WriteCallRows(w, "mpi", MpiClasses(profile), kMpiColumns);
  WriteCallRows(w, "mpi_functions", MpiFunctions(profile), kMpiColumns);
  WriteCallRows(w, "files", FileCalls(profile), kFileColumns);
  WriteCallRows(w, "functions", FunctionCalls(profile), kTimeColumns);
  w.EndObject();
}

void WriteApplication(JsonWriter& w, const FootprintEntry& e, const JobDescription& job) {
  w.BeginObject().Field("metric", e.series.metric.name);
  w.Key("tags").BeginObject();
  for (const auto& [key, value] : e.series.tags.pairs()) w.Field(key, value);
  w.EndObject();
  w.Field("unit", e.series.metric.unit).Field("type", ToString(e.series.metric.type));
  w.Field("last", e.last).Field("mean", e.mean).Field("min", e.min).Field("max", e.max);
  for (size_t i = 0; e.spread && i < kSpreadColumns; ++i) {
    w.Field(kSpreadNames[i], e.spread->mean[i]);
  }
  w.Field("min_by", OwnerName(e.min_owner, job)).Field("max_by", OwnerName(e.max_owner, job));
  w.EndObject();
}

}  // namespace

std::string SummaryToJson(const Summary& summary) {
  std::string out;
  JsonWriter w(out);
  WriteSummary(w, summary);
  return out;
}

void WriteReportTop(JsonWriter& w, const Profile& profile, const Summary& summary, Nanos now) {
  w.Key("summary");
  WriteSummary(w, summary);
  w.Key("headline").BeginArray();
  for (const HeadlinePart& part : HeadlineOf(profile, summary, now)) w.Value(part.text);
  w.EndArray();
  w.Key("asked");
  WriteAsked(w, profile, summary, now);
  WriteCalls(w, profile, summary);
  WriteEnergy(w, profile);
}

std::string ReportToJson(const Profile& profile, const std::vector<NodeRow>& nodes, Nanos now,
                         std::string_view steps, std::span<const ReportHint> hints) {
  std::string out;
  JsonWriter w(out);
  const Summary summary = Summarize(profile, nodes, now);
  w.BeginObject();
  WriteReportTop(w, profile, summary, now);
  w.Key("hints");
  WriteHints(w, hints);
  w.Key("nodes").BeginArray();
  for (const NodeRow& row : nodes) WriteNode(w, row);
  w.EndArray().Key("application").BeginArray();
  for (const FootprintEntry* e : ApplicationEntries(profile)) WriteApplication(w, *e, profile.job);
  w.EndArray();
  const Nanos end = profile.job.end != 0 ? profile.job.end : now;
  WriteMomentsReport(w, profile, end, summary.duration);
  if (!steps.empty()) w.Key("steps").Raw(steps);
  w.Key("profile").Raw(ProfileToJson(profile)).EndObject();
  return out;
}

}  // namespace sonde
