// Many runs as JSON; docs/endpoints.md describes it.
#include "core/text/step_title.h"
#include "profiles/compare/many_runs.h"
#include "profiles/json/writer.h"

namespace sonde {
namespace {

void WriteRun(JsonWriter& w, const ProfileEntry& entry) {
  const JobDescription& job = entry.job;
  w.BeginObject().Field("key", entry.key).Field("job", job.id.job).Field("step", job.id.step);
  w.Field("title", StepTitle(job.name, job.command)).Field("state", ToString(job.state));
  w.Field("level", job.level).Field("nodes", job.expected_nodes).Field("tasks", job.expected_tasks);
  w.Field("start", job.start).Field("end", job.end).EndObject();
}

template <typename T>
void WriteList(JsonWriter& w, std::string_view key, const std::vector<T>& values) {
  w.Key(key).BeginArray();
  for (const T& value : values) w.Value(value);
  w.EndArray();
}

void WriteSpread(JsonWriter& w, const SpreadRow& row, size_t runs) {
  const NumberKind& kind = row.kind;
  w.BeginObject().Field("section", ToString(kind.section)).Field("name", kind.name);
  w.Field("unit", kind.unit).Field("metric", kind.metric).Field("count", row.values.size());
  w.Field("min", row.min).Field("p10", row.p10).Field("median", row.median);
  w.Field("p90", row.p90).Field("max", row.max).Field("weight", row.weight);
  w.Field("standing", ToString(row.standing));
  WriteList(w, "apart", row.apart);
  // Nobody draws the runs of what does not differ.
  if (row.standing != Standing::kSame && row.standing != Standing::kPseudo) {
    if (row.runs.size() != runs) WriteList(w, "runs", row.runs);
    WriteList(w, "values", row.values);
  }
  w.EndObject();
}

}  // namespace

std::string ManyRunsToJson(const ManyRuns& runs) {
  std::string out;
  JsonWriter w(out);
  w.BeginObject().Key("runs").BeginArray();
  for (const ProfileEntry& entry : runs.found.entries) WriteRun(w, entry);
  w.EndArray().Field("running", runs.found.running).Key("rows").BeginArray();
  for (const SpreadRow& row : runs.rows) WriteSpread(w, row, runs.found.entries.size());
  w.EndArray().EndObject();
  return out + "\n";
}

}  // namespace sonde
