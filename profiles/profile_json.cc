// Profiles as JSON. What is read comes from a file or a socket and is not trusted: sizes, depths,
// counts, ranges and names are checked, and a field that is there has the right type or the whole
// text is refused. Fields that are not known are passed over, so that versions may differ.
#include <boost/json/monotonic_resource.hpp>
#include <boost/json/value.hpp>
#include <cmath>
#include <limits>
#include <new>

#include "profiles/json_parse.h"
#include "profiles/json_writer.h"
#include "profiles/profile.h"

namespace sonde {
namespace {

namespace json = boost::json;

constexpr size_t kMaxString = 65536;
constexpr size_t kMaxNodes = size_t{1} << 20;
constexpr size_t kMaxNotes = 4096;
constexpr size_t kMaxEntries = size_t{1} << 20;
constexpr size_t kMaxEntryTags = kMaxTags + 4;  // the house adds host, job and stat

void WriteOwner(JsonWriter& w, std::string_view key, const Owner& owner,
                const JobDescription& job) {
  if (owner.node == Owner::kNobody) return;
  w.Key(key).BeginObject().Field("node", owner.node);
  if (owner.node < job.nodes.size()) w.Field("host", job.nodes[owner.node].host);
  if (owner.rank != Owner::kNobody) w.Field("rank", owner.rank);
  w.EndObject();
}

void WriteCoverage(JsonWriter& w, const Coverage& coverage) {
  w.Key("coverage").BeginObject();
  w.Field("expected", coverage.expected).Field("got", coverage.got);
  w.Field("skipped", coverage.skipped);
  w.EndObject();
}

void WriteNodes(JsonWriter& w, const std::vector<NodeInfo>& nodes) {
  w.Key("nodes").BeginArray();
  for (const NodeInfo& node : nodes) {
    w.BeginObject().Field("host", node.host).Field("job", node.job);
    w.Field("node_id", node.node_id).Field("tasks", node.tasks);
    w.Field("joined", node.joined).Field("left", node.left).Field("lost", node.lost);
    w.Field("note", node.note).EndObject();
  }
  w.EndArray();
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
  w.Field("start", job.start).Field("end", job.end).Field("state", ToString(job.state));
  w.Field("exit_status", job.exit_status);
  WriteCoverage(w, job.coverage);
  WriteNodes(w, job.nodes);
  w.Key("notes").BeginArray();
  for (const std::string& note : job.notes) w.Value(note);
  w.EndArray();
  w.Field("version", job.version);
  w.EndObject();
}

void WriteEntry(JsonWriter& w, const FootprintEntry& e, const JobDescription& job) {
  const Metric& metric = e.series.metric;
  w.BeginObject().Field("metric", metric.name);
  w.Key("tags").BeginObject();
  for (const auto& [key, value] : e.series.tags.pairs()) w.Field(key, value);
  w.EndObject();
  w.Field("unit", metric.unit).Field("help", metric.help).Field("type", ToString(metric.type));
  w.Field("level", metric.level).Field("reduction", ToString(metric.reduction));
  w.Field("ticks", e.ticks).Field("last", e.last).Field("mean", e.mean);
  w.Field("min", e.min).Field("max", e.max);
  WriteOwner(w, "min_owner", e.min_owner, job);
  WriteOwner(w, "max_owner", e.max_owner, job);
  w.EndObject();
}

// The fields of one object. The first that is wrong is remembered and named; a field that is absent
// leaves what was there.
class Fields {
 public:
  Fields(const json::value& value, std::string& error, std::string_view where) : error_(error) {
    object_ = value.if_object();
    if (object_ == nullptr) Wrong(where, "an object");
  }

  const json::value* Find(std::string_view key) const {
    return object_ == nullptr ? nullptr : object_->if_contains(key);
  }
  void Read(std::string_view key, std::string& out, size_t limit = kMaxString) {
    const json::value* value = Find(key);
    if (value == nullptr) return;
    const json::string* text = value->if_string();
    if (text == nullptr || text->size() > limit) return Wrong(key, "a text that is not too long");
    out.assign(text->data(), text->size());
  }
  template <typename T>
  requires std::is_integral_v<T>
  void Read(std::string_view key, T& out, T low = std::numeric_limits<T>::min(),
            T high = std::numeric_limits<T>::max()) {
    const json::value* value = Find(key);
    if (value == nullptr) return;
    json::error_code error;
    const T number = value->to_number<T>(error);
    if (error || value->is_double() || number < low || number > high) {
      return Wrong(key, "a whole number in its range");
    }
    out = number;
  }
  void Read(std::string_view key, bool& out) {
    const json::value* value = Find(key);
    if (value == nullptr) return;
    if (!value->is_bool()) return Wrong(key, "true or false");
    out = value->get_bool();
  }
  // null is NaN: a value that is not known.
  void Read(std::string_view key, double& out) {
    const json::value* value = Find(key);
    if (value == nullptr) return;
    if (value->is_null()) {
      out = std::nan("");
    } else if (value->is_number()) {
      out = value->to_number<double>();
    } else {
      Wrong(key, "a number or null");
    }
  }
  // nullptr if absent or wrong.
  const json::array* Array(std::string_view key, size_t limit) {
    const json::value* value = Find(key);
    if (value == nullptr) return nullptr;
    const json::array* array = value->if_array();
    if (array != nullptr && array->size() <= limit) return array;
    Wrong(key, "a list that is not too long");
    return nullptr;
  }
  void Wrong(std::string_view key, std::string_view expected) {
    if (!error_.empty()) return;
    error_.append(key).append(": expected ").append(expected);
  }

 private:
  const json::object* object_;
  std::string& error_;
};

Coverage ReadCoverage(const json::value& value, std::string& error) {
  Fields fields(value, error, "coverage");
  Coverage coverage;
  fields.Read("expected", coverage.expected);
  fields.Read("got", coverage.got);
  fields.Read("skipped", coverage.skipped);
  return coverage;
}

NodeInfo ReadNode(const json::value& value, std::string& error) {
  Fields fields(value, error, "nodes");
  NodeInfo node;
  fields.Read("host", node.host, 256);
  fields.Read("job", node.job, 256);
  fields.Read("node_id", node.node_id);
  fields.Read("tasks", node.tasks);
  fields.Read("joined", node.joined, Nanos{0});
  fields.Read("left", node.left, Nanos{0});
  fields.Read("lost", node.lost);
  fields.Read("note", node.note);
  return node;
}

void ReadIdentity(Fields& fields, JobDescription& job) {
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
  Fields fields(value, error, "description");
  JobDescription job;
  ReadIdentity(fields, job);
  fields.Read("expected_nodes", job.expected_nodes);
  fields.Read("job_nodes", job.job_nodes);
  fields.Read("expected_tasks", job.expected_tasks);
  fields.Read("level", job.level, kMinLevel, kMaxLevel);
  fields.Read("period", job.period, Nanos{1});
  fields.Read("start", job.start, Nanos{0});
  fields.Read("end", job.end, Nanos{0});
  std::string state(ToString(EndState::kRunning));
  fields.Read("state", state, 64);
  job.state = ParseEndState(state);
  fields.Read("exit_status", job.exit_status);
  if (const json::value* coverage = fields.Find("coverage")) {
    job.coverage = ReadCoverage(*coverage, error);
  }
  if (const json::array* nodes = fields.Array("nodes", kMaxNodes)) {
    job.nodes.reserve(nodes->size());
    for (const json::value& node : *nodes) job.nodes.push_back(ReadNode(node, error));
  }
  if (const json::array* notes = fields.Array("notes", kMaxNotes)) {
    for (const json::value& note : *notes) {
      if (!note.is_string() || note.get_string().size() > kMaxString) {
        fields.Wrong("notes", "texts that are not too long");
        break;
      }
      job.notes.emplace_back(note.get_string().data(), note.get_string().size());
    }
  }
  return job;
}

Owner ReadOwner(const json::value* value, std::string& error) {
  Owner owner;
  if (value == nullptr) return owner;
  Fields fields(*value, error, "owner");
  fields.Read("node", owner.node);
  fields.Read("rank", owner.rank);
  return owner;
}

void ReadTags(Fields& fields, Tags& tags) {
  const json::value* value = fields.Find("tags");
  if (value == nullptr) return;
  const json::object* object = value->if_object();
  if (object == nullptr || object->size() > kMaxEntryTags) {
    return fields.Wrong("tags", "an object of a few texts");
  }
  for (const auto& [key, tag] : *object) {
    const std::string_view name(key.data(), key.size());
    if (!tag.is_string()) return fields.Wrong("tags", "an object of a few texts");
    const std::string_view text(tag.get_string().data(), tag.get_string().size());
    if (!CheckTag(name, text).ok()) return fields.Wrong("tags", "names and values of tags");
    tags.Set(name, text);
  }
}

void ReadMetric(Fields& fields, Metric& metric) {
  fields.Read("metric", metric.name, kMaxNameLength);
  if (!CheckMetricName(metric.name).ok()) fields.Wrong("metric", "the name of a metric");
  fields.Read("unit", metric.unit, kMaxNameLength);
  fields.Read("help", metric.help, kMaxTextLength);
  fields.Read("level", metric.level, uint8_t{kMinLevel}, uint8_t{kMaxLevel});
  std::string type(ToString(metric.type));
  std::string reduction(ToString(metric.reduction));
  fields.Read("type", type, 64);
  fields.Read("reduction", reduction, 64);
  bool known = false;
  for (const auto t : {MetricType::kGauge, MetricType::kCounter, MetricType::kHistogram}) {
    if (ToString(t) == type) metric.type = t, known = true;
  }
  if (!known) fields.Wrong("type", "gauge, counter or histogram");
  known = false;
  for (const auto r : {Reduction::kSum, Reduction::kMean, Reduction::kMin, Reduction::kMax}) {
    if (ToString(r) == reduction) metric.reduction = r, known = true;
  }
  if (!known) fields.Wrong("reduction", "sum, mean, min or max");
}

FootprintEntry ReadEntry(const json::value& value, std::string& error) {
  Fields fields(value, error, "footprint");
  FootprintEntry entry;
  ReadMetric(fields, entry.series.metric);
  ReadTags(fields, entry.series.tags);
  fields.Read("ticks", entry.ticks);
  fields.Read("last", entry.last);
  fields.Read("mean", entry.mean);
  fields.Read("min", entry.min);
  fields.Read("max", entry.max);
  entry.min_owner = ReadOwner(fields.Find("min_owner"), error);
  entry.max_owner = ReadOwner(fields.Find("max_owner"), error);
  return entry;
}

OwnCost ReadCost(const json::value& value, std::string& error) {
  Fields fields(value, error, "cost");
  OwnCost cost;
  fields.Read("cpu_seconds", cost.cpu_seconds);
  fields.Read("peak_node_memory", cost.peak_node_memory);
  fields.Read("bytes_sent", cost.bytes_sent);
  fields.Read("stored_bytes", cost.stored_bytes);
  return cost;
}

Profile ReadProfile(const json::value& value, std::string& error) {
  Fields fields(value, error, "profile");
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
  w.EndObject().EndObject();
  return out;
}

Result<Profile> ProfileFromJson(std::string_view text) {
  return Parse<Profile>(text, "a profile", ReadProfile);
}

}  // namespace sonde
