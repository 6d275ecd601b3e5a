#include "profiles/model/series_json.h"

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

void ReadMetric(JsonFields& fields, Metric& metric) {
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

}  // namespace

void WriteSeriesFields(JsonWriter& w, const Series& series) {
  const Metric& metric = series.metric;
  w.Field("metric", metric.name);
  w.Key("tags").BeginObject();
  for (const auto& [key, value] : series.tags.pairs()) w.Field(key, value);
  w.EndObject();
  w.Field("unit", metric.unit).Field("help", metric.help).Field("type", ToString(metric.type));
  w.Field("level", metric.level).Field("reduction", ToString(metric.reduction));
}

void ReadSeriesFields(JsonFields& fields, Series& series) {
  ReadMetric(fields, series.metric);
  ReadTags(fields, series.tags);
}

void WriteOwner(JsonWriter& w, std::string_view key, const Owner& owner,
                const JobDescription& job) {
  if (owner.node == Owner::kNobody) return;
  w.Key(key).BeginObject().Field("node", owner.node);
  if (owner.node < job.nodes.size()) w.Field("host", job.nodes[owner.node].host);
  if (owner.rank != Owner::kNobody) w.Field("rank", owner.rank);
  w.EndObject();
}

Owner ReadOwner(const json::value* value, std::string& error) {
  Owner owner;
  if (value == nullptr) return owner;
  JsonFields fields(*value, error, "owner");
  fields.Read("node", owner.node);
  fields.Read("rank", owner.rank);
  return owner;
}

}  // namespace sonde
