#include "profiles/model/series_json.h"

#include "profiles/json/kept.h"

namespace sonde {
namespace {

namespace json = boost::json;

constexpr size_t kMaxEntryTags = kMaxTags + 4;  // Sonde adds host, job and stat

void ReadTags(JsonFields& fields, Tags& tags) {
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

void ReadMetric(JsonFields& fields, Metric& metric, KeptMembers& kept) {
  fields.Read("metric", metric.name, kMaxNameLength);
  if (!CheckMetricName(metric.name).ok()) fields.Wrong("metric", "the name of a metric");
  fields.Read("unit", metric.unit, kMaxNameLength);
  fields.Read("help", metric.help, kMaxTextLength);
  fields.Read("level", metric.level);
  std::string type(ToString(metric.type));
  std::string reduction(ToString(metric.reduction));
  fields.Read("type", type, 64);
  fields.Read("reduction", reduction, 64);
  metric.type = MetricType::kUnknown;
  for (const auto t : {MetricType::kGauge, MetricType::kCounter, MetricType::kHistogram}) {
    if (ToString(t) == type) metric.type = t;
  }
  metric.reduction = Reduction::kUnknown;
  for (const auto r : {Reduction::kSum, Reduction::kMean, Reduction::kMin, Reduction::kMax}) {
    if (ToString(r) == reduction) metric.reduction = r;
  }
  if (!IsKnown(metric.type)) fields.KeepWord(kept, "type");
  if (!IsKnown(metric.reduction)) fields.KeepWord(kept, "reduction");
}

}  // namespace

void WriteSeriesFields(JsonWriter& w, const Series& series, const KeptMembers& kept) {
  const Metric& metric = series.metric;
  w.Field("metric", metric.name);
  w.Key("tags").BeginObject();
  for (const auto& [key, value] : series.tags.pairs()) w.Field(key, value);
  w.EndObject();
  w.Field("unit", metric.unit).Field("help", metric.help);
  WriteWord(w, "type", ToString(metric.type), IsKnown(metric.type), kept);
  w.Field("level", metric.level);
  WriteWord(w, "reduction", ToString(metric.reduction), IsKnown(metric.reduction), kept);
}

void ReadSeriesFields(JsonFields& fields, Series& series, KeptMembers& kept) {
  ReadMetric(fields, series.metric, kept);
  ReadTags(fields, series.tags);
}

void WriteOwner(JsonWriter& w, std::string_view key, const Owner& owner, const JobDescription& job,
                const KeptMembers& kept) {
  if (owner.node == Owner::kNobody) return;
  w.Key(key).BeginObject().Field("node", owner.node);
  if (owner.node < job.nodes.size()) w.Field("host", job.nodes[owner.node].host);
  if (owner.rank != Owner::kNobody) w.Field("rank", owner.rank);
  WriteKept(w, kept, key);
  w.EndObject();
}

Owner ReadOwner(JsonFields& around, std::string_view key, std::string& error, KeptMembers& kept) {
  Owner owner;
  const json::value* value = around.Find(key);
  if (value == nullptr) return owner;
  JsonFields fields(*value, error, "owner");
  fields.Read("node", owner.node);
  fields.Read("rank", owner.rank);
  fields.Skip({"host"});
  fields.Keep(kept, key);
  return owner;
}

}  // namespace sonde
