// Profiles as JSON. The input comes from a file or a socket and is not trusted: sizes, depths,
// counts, ranges and names are checked, and if a field has the wrong type the whole text is
// refused. Fields and words that only a later version knows are kept (json/kept.h) and written
// again.
#include <boost/json/monotonic_resource.hpp>
#include <boost/json/value.hpp>
#include <map>
#include <new>
#include <string>

#include "core/step_environment.h"
#include "profiles/json/fields.h"
#include "profiles/json/kept.h"
#include "profiles/json/parse.h"
#include "profiles/json/writer.h"
#include "profiles/model/moments_json.h"
#include "profiles/model/presence.h"
#include "profiles/model/profile.h"
#include "profiles/model/request_json.h"
#include "profiles/model/series_json.h"

namespace sonde {
namespace {

namespace json = boost::json;

constexpr size_t kMaxNodes = size_t{1} << 20;
constexpr size_t kMaxNotes = 4096;
constexpr size_t kMaxEntries = size_t{1} << 20;
constexpr size_t kMaxFigures = 4096;

void WriteCoverage(JsonWriter& w, const Coverage& coverage, const KeptMembers& kept) {
  w.Key("coverage").BeginObject();
  w.Field("expected", coverage.expected).Field("got", coverage.got);
  w.Field("skipped", coverage.skipped);
  WriteKept(w, kept, "coverage");
  w.EndObject();
}

void WriteNodes(JsonWriter& w, const std::vector<NodeInfo>& nodes) {
  w.Key("nodes").BeginArray();
  for (const NodeInfo& node : nodes) {
    w.BeginObject().Field("host", node.host).Field("job", node.job);
    w.Field("node_id", node.node_id).Field("tasks", node.tasks);
    w.Field("joined", node.joined).Field("left", node.left).Field("lost", node.lost);
    if (node.end_in_rows != 0) w.Field("end_in_rows", node.end_in_rows);
    w.Field("note", node.note);
    WriteKept(w, node.kept);
    w.EndObject();
  }
  w.EndArray();
}

void WriteFigure(JsonWriter& w, const Figure& figure, const JobDescription& job) {
  w.BeginObject().Field("name", figure.name).Field("unit", figure.unit);
  w.Field("value", figure.value).Field("count", figure.count).Field("time", figure.time);
  WriteOwner(w, "by", {figure.node, figure.task}, job, figure.kept);
  WriteKept(w, figure.kept);
  w.EndObject();
}

void WriteTexts(JsonWriter& w, std::string_view key,
                const std::map<std::string, std::string>& texts) {
  w.Key(key).BeginObject();
  for (const auto& [name, text] : texts) w.Field(name, text);
  w.EndObject();
}

void WriteDescription(JsonWriter& w, const JobDescription& job) {
  w.BeginObject();
  w.Field("cluster", job.cluster).Field("job", job.id.job).Field("step", job.id.step);
  w.Field("array_job", job.array_job).Field("array_task", job.array_task);
  w.Field("het_job", job.het_job).Field("name", job.name).Field("user", job.user);
  w.Field("uid", job.uid).Field("account", job.account).Field("partition", job.partition);
  w.Field("command", job.command).Field("workdir", job.workdir);
  w.Field("launch_host", job.launch_host).Field("expected_nodes", job.expected_nodes);
  w.Field("job_nodes", job.job_nodes).Field("expected_tasks", job.expected_tasks);
  w.Field("level", job.level).Field("period", job.period);
  w.Field("start", job.start).Field("end", job.end);
  WriteWord(w, "state", ToString(job.state), job.state != EndState::kUnknown, job.kept);
  w.Field("exit_status", job.exit_status);
  WriteExits(w, job);
  WriteRequest(w, job);
  WriteCoverage(w, job.coverage, job.kept);
  WritePresence(w, job.presence, job.kept);
  if (job.presence_from != 0) w.Field("presence_from", job.presence_from);
  WriteNodes(w, job.nodes);
  w.Key("notes").BeginArray();
  for (const std::string& note : job.notes) w.Value(note);
  w.EndArray();
  w.Key("figures").BeginArray();
  for (const Figure& figure : job.figures) WriteFigure(w, figure, job);
  w.EndArray();
  if (!job.tags.empty()) WriteTexts(w, "tags", job.tags);
  if (!job.environment.empty()) WriteTexts(w, "environment", job.environment);
  w.Field("version", job.version);
  WriteKept(w, job.kept);
  w.EndObject();
}

void WriteSpread(JsonWriter& w, std::string_view key, const Spread& spread,
                 const KeptMembers& kept) {
  w.Key(key).BeginObject();
  for (size_t i = 0; i < kSpreadColumns; ++i) w.Field(kSpreadNames[i], spread[i]);
  WriteKept(w, kept, KeptName("spread", key));
  w.EndObject();
}

void WriteEntry(JsonWriter& w, const FootprintEntry& e, const JobDescription& job) {
  w.BeginObject();
  WriteSeriesFields(w, e.series, e.kept);
  w.Field("ticks", e.ticks).Field("last", e.last).Field("mean", e.mean);
  w.Field("min", e.min).Field("max", e.max);
  WriteOwner(w, "min_owner", e.min_owner, job, e.kept);
  WriteOwner(w, "max_owner", e.max_owner, job, e.kept);
  if (e.spread) {
    w.Key("spread").BeginObject();
    WriteSpread(w, "last", e.spread->last, e.kept);
    WriteSpread(w, "mean", e.spread->mean, e.kept);
    WriteKept(w, e.kept, "spread");
    w.EndObject();
  }
  WriteKept(w, e.kept);
  w.EndObject();
}

Coverage ReadCoverage(const json::value& value, std::string& error, KeptMembers& kept) {
  JsonFields fields(value, error, "coverage");
  Coverage coverage;
  fields.Read("expected", coverage.expected);
  fields.Read("got", coverage.got);
  fields.Read("skipped", coverage.skipped);
  fields.Keep(kept, "coverage");
  return coverage;
}

NodeInfo ReadNode(const json::value& value, std::string& error) {
  JsonFields fields(value, error, "nodes");
  NodeInfo node;
  fields.Read("host", node.host, 256);
  fields.Read("job", node.job, 256);
  fields.Read("node_id", node.node_id);
  fields.Read("tasks", node.tasks);
  fields.Read("joined", node.joined, Nanos{0});
  fields.Read("left", node.left, Nanos{0});
  fields.Read("end_in_rows", node.end_in_rows, Nanos{0});
  fields.Read("lost", node.lost);
  fields.Read("note", node.note);
  fields.Keep(node.kept);
  return node;
}

Figure ReadFigure(const json::value& value, std::string& error) {
  JsonFields fields(value, error, "figures");
  Figure figure;
  fields.Read("name", figure.name, kMaxNameLength);
  if (!CheckMetricName(figure.name).ok()) fields.Wrong("figures", "names like those of metrics");
  fields.Read("unit", figure.unit, kMaxNameLength);
  fields.Read("value", figure.value);
  fields.Read("count", figure.count);
  fields.Read("time", figure.time, Nanos{0});
  const Owner by = ReadOwner(fields, "by", error, figure.kept);
  figure.node = by.node;
  figure.task = by.rank;
  fields.Keep(figure.kept);
  return figure;
}

// An object of texts: at most `count`, each of at most so many bytes.
void ReadTexts(JsonFields& fields, std::string_view key, size_t count, size_t name_size,
               size_t text_size, std::map<std::string, std::string>& out) {
  const json::value* value = fields.Find(key);
  if (value == nullptr) return;
  const json::object* object = value->if_object();
  if (object == nullptr || object->size() > count) {
    return fields.Wrong(key, "an object that is not too large");
  }
  for (const auto& [name, text] : *object) {
    const json::string* held = text.if_string();
    if (name.size() > name_size || held == nullptr || held->size() > text_size) {
      return fields.Wrong(key, "texts that are not too long");
    }
    out.emplace(std::string(name.data(), name.size()), std::string(held->data(), held->size()));
  }
}

void ReadIdentity(JsonFields& fields, JobDescription& job) {
  fields.Read("cluster", job.cluster, 256);
  fields.Read("job", job.id.job, 256);
  fields.Read("step", job.id.step, 256);
  fields.Read("array_job", job.array_job, 256);
  fields.Read("array_task", job.array_task, 256);
  fields.Read("het_job", job.het_job, 256);
  fields.Read("name", job.name);
  fields.Read("user", job.user, 256);
  fields.Read("uid", job.uid);
  fields.Read("account", job.account);
  fields.Read("partition", job.partition);
  fields.Read("command", job.command);
  fields.Read("workdir", job.workdir);
  fields.Read("launch_host", job.launch_host, 256);
  fields.Read("version", job.version, 256);
}

JobDescription ReadDescription(const json::value& value, std::string& error) {
  JsonFields fields(value, error, "description");
  JobDescription job;
  ReadIdentity(fields, job);
  fields.Read("expected_nodes", job.expected_nodes);
  fields.Read("job_nodes", job.job_nodes);
  fields.Read("expected_tasks", job.expected_tasks);
  // A level or a state that is not known is shown as it is.
  fields.Read("level", job.level, kMinLevel, int{std::numeric_limits<uint8_t>::max()});
  fields.Read("period", job.period, Nanos{1});
  fields.Read("start", job.start, Nanos{0});
  fields.Read("end", job.end, Nanos{0});
  std::string state(ToString(EndState::kRunning));
  fields.Read("state", state, 64);
  job.state = ParseEndState(state);
  if (job.state == EndState::kUnknown) fields.KeepWord(job.kept, "state");
  fields.Read("exit_status", job.exit_status);
  ReadExits(fields, error, job);
  ReadRequest(fields, error, job);
  if (const json::value* coverage = fields.Find("coverage")) {
    job.coverage = ReadCoverage(*coverage, error, job.kept);
  }
  job.presence = ReadPresence(fields, error, job.kept);
  fields.Read("presence_from", job.presence_from, Nanos{0});
  if (const json::array* nodes = fields.Array("nodes", kMaxNodes)) {
    job.nodes.reserve(nodes->size());
    for (const json::value& node : *nodes) job.nodes.push_back(ReadNode(node, error));
  }
  if (const json::array* notes = fields.Array("notes", kMaxNotes)) {
    for (const json::value& note : *notes) {
      if (!note.is_string() || note.get_string().size() > kMaxJsonString) {
        fields.Wrong("notes", "texts that are not too long");
        break;
      }
      job.notes.emplace_back(note.get_string().data(), note.get_string().size());
    }
  }
  if (const json::array* figures = fields.Array("figures", kMaxFigures)) {
    for (const json::value& figure : *figures) job.figures.push_back(ReadFigure(figure, error));
  }
  ReadTexts(fields, "tags", kMaxUserTags, kMaxUserTagName, kMaxUserTagValue, job.tags);
  // A byte that is not UTF-8 has become three bytes.
  ReadTexts(fields, "environment", kMaxKeptVariables, 3 * kMaxKeptName, 3 * kMaxKeptValue,
            job.environment);
  fields.Keep(job.kept);
  return job;
}

Spread ReadSpread(JsonFields& both, std::string_view key, std::string& error, KeptMembers& kept) {
  Spread spread{};
  const json::value* value = both.Find(key);
  if (value == nullptr) return spread;
  JsonFields fields(*value, error, "spread");
  for (size_t i = 0; i < kSpreadColumns; ++i) fields.Read(kSpreadNames[i], spread[i]);
  fields.Keep(kept, KeptName("spread", key));
  return spread;
}

FootprintEntry ReadEntry(const json::value& value, std::string& error) {
  JsonFields fields(value, error, "footprint");
  FootprintEntry entry;
  ReadSeriesFields(fields, entry.series, entry.kept);
  fields.Read("ticks", entry.ticks);
  fields.Read("last", entry.last);
  fields.Read("mean", entry.mean);
  fields.Read("min", entry.min);
  fields.Read("max", entry.max);
  entry.min_owner = ReadOwner(fields, "min_owner", error, entry.kept);
  entry.max_owner = ReadOwner(fields, "max_owner", error, entry.kept);
  if (const json::value* spread = fields.Find("spread")) {
    JsonFields both(*spread, error, "spread");
    entry.spread = {ReadSpread(both, "last", error, entry.kept),
                    ReadSpread(both, "mean", error, entry.kept)};
    entry.series.metric.spread = true;
    both.Keep(entry.kept, "spread");
  }
  fields.Keep(entry.kept);
  return entry;
}

OwnCost ReadCost(const json::value& value, std::string& error) {
  JsonFields fields(value, error, "cost");
  OwnCost cost;
  fields.Read("cpu_seconds", cost.cpu_seconds);
  fields.Read("peak_node_memory", cost.peak_node_memory);
  fields.Read("bytes_sent", cost.bytes_sent);
  fields.Read("stored_bytes", cost.stored_bytes);
  fields.Read("carriers", cost.carriers);
  fields.Keep(cost.kept);
  return cost;
}

Profile ReadProfile(const json::value& value, std::string& error) {
  JsonFields fields(value, error, "profile");
  Profile profile;
  const json::value* job = fields.Find("job");
  if (job == nullptr) {
    fields.Wrong("job", "a description");
    return profile;
  }
  profile.job = ReadDescription(*job, error);
  if (const json::array* entries = fields.Array("footprint", kMaxEntries)) {
    profile.footprint.reserve(entries->size());
    for (const json::value& entry : *entries) profile.footprint.push_back(ReadEntry(entry, error));
  }
  if (const json::value* cost = fields.Find("cost")) profile.cost = ReadCost(*cost, error);
  if (const json::value* moments = fields.Find("moments")) {
    profile.moments = ReadMoments(*moments, error);
  }
  fields.Keep(profile.kept);
  return profile;
}

// Parses the text and hands it to `read`; every way it can fail becomes a Status.
template <typename T>
Result<T> Parse(std::string_view text, std::string_view what,
                T (*read)(const json::value&, std::string&)) try {
  // Everything kept is copied out, so the parsed values can live in one arena.
  json::monotonic_resource arena;
  const Result<json::value> value = ParseJson(text, what, &arena);
  if (!value.ok()) return value.status();
  std::string wrong;
  T result = read(*value, wrong);
  if (!wrong.empty()) {
    return Status(Code::kCorrupt, "read " + std::string(what) + ": " + wrong);
  }
  return result;
} catch (const std::bad_alloc&) {
  return Status(Code::kLimit, "read " + std::string(what) + ": out of memory");
}

}  // namespace

std::string MomentsToJson(const StepMoments& moments, const JobDescription& job) {
  std::string out;
  JsonWriter w(out);
  WriteMoments(w, moments, job);
  return out;
}

Result<StepMoments> MomentsFromJson(std::string_view text) {
  return Parse<StepMoments>(text, "the moments of a step", ReadMoments);
}

std::string DescriptionToJson(const JobDescription& job) {
  std::string out;
  JsonWriter w(out);
  WriteDescription(w, job);
  return out;
}

Result<JobDescription> DescriptionFromJson(std::string_view text) {
  return Parse<JobDescription>(text, "the description of a step", ReadDescription);
}

std::string ProfileToJson(const Profile& profile) {
  std::string out;
  JsonWriter w(out);
  w.BeginObject().Key("job");
  WriteDescription(w, profile.job);
  w.Key("footprint").BeginArray();
  for (const FootprintEntry& entry : profile.footprint) WriteEntry(w, entry, profile.job);
  w.EndArray();
  w.Key("cost").BeginObject();
  w.Field("cpu_seconds", profile.cost.cpu_seconds);
  w.Field("peak_node_memory", profile.cost.peak_node_memory);
  w.Field("bytes_sent", profile.cost.bytes_sent);
  w.Field("stored_bytes", profile.cost.stored_bytes);
  if (!profile.cost.carriers.empty()) w.Field("carriers", profile.cost.carriers);
  WriteKept(w, profile.cost.kept);
  w.EndObject().Key("moments");
  WriteMoments(w, profile.moments, profile.job);
  WriteKept(w, profile.kept);
  w.EndObject();
  return out;
}

Result<Profile> ProfileFromJson(std::string_view text) {
  return Parse<Profile>(text, "a profile", ReadProfile);
}

}  // namespace sonde
