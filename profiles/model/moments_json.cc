#include "profiles/model/moments_json.h"

#include <cmath>

#include "core/histogram_buckets.h"
#include "core/text/names.h"
#include "profiles/json/fields.h"
#include "profiles/json/kept.h"
#include "profiles/model/series_json.h"

namespace sonde {
namespace {

namespace json = boost::json;

constexpr size_t kMaxEach = 65536;  // phases, remarks, distributions

void WritePhase(JsonWriter& w, const Phase& phase, const JobDescription& job) {
  w.BeginObject().Field("name", phase.name);
  w.Field("begin", phase.begin).Field("end", phase.end).Field("pauses", phase.pauses);
  w.Field("began", phase.began).Field("ended", phase.ended);
  WriteOwner(w, "by", phase.by, job, phase.kept);
  WriteKept(w, phase.kept);
  w.EndObject();
}

void WriteRemark(JsonWriter& w, const Remark& remark, const JobDescription& job) {
  w.BeginObject().Field("text", remark.text);
  w.Field("first", remark.first).Field("last", remark.last).Field("count", remark.count);
  WriteOwner(w, "by", remark.by, job, remark.kept);
  WriteKept(w, remark.kept);
  w.EndObject();
}

// Readers need the buckets and the exact numbers; the quantiles are for people and programs that do
// not know the buckets.
void WriteDistribution(JsonWriter& w, const NamedSketch& distribution, const KeptMembers& kept) {
  const Sketch& sketch = distribution.sketch;
  w.BeginObject();
  WriteSeriesFields(w, distribution.series, kept);
  w.Field("count", sketch.count()).Field("sum", sketch.sum());
  const bool known = sketch.knows_extremes();
  w.Field("min", known ? sketch.min() : std::nan(""));
  w.Field("max", known ? sketch.max() : std::nan(""));
  w.Field("p50", sketch.Quantile(0.5)).Field("p90", sketch.Quantile(0.9));
  w.Field("p99", sketch.Quantile(0.99));
  w.Key("buckets").BeginArray();
  for (const auto& [bucket, count] : sketch.buckets()) {
    w.BeginArray().Value(bucket).Value(count).EndArray();
  }
  w.EndArray();
  WriteKept(w, kept);
  w.EndObject();
}

void WriteAlarm(JsonWriter& w, const RaisedAlarm& alarm, const JobDescription& job) {
  w.BeginObject().Field("rule", alarm.rule).Field("severity", alarm.severity);
  w.Field("text", alarm.text).Key("tags").BeginObject();
  for (const auto& [key, value] : alarm.tags.pairs()) w.Field(key, value);
  w.EndObject().Field("raised", alarm.raised).Field("over", alarm.over);
  w.Field("value", alarm.value);
  WriteOwner(w, "by", alarm.by, job, alarm.kept);
  WriteKept(w, alarm.kept);
  w.EndObject();
}

void ReadText(JsonFields& fields, std::string_view key, std::string& text) {
  fields.Read(key, text, kMaxTextLength);
  if (text.empty() || !names::IsPlainText(text)) fields.Wrong(key, "a plain text");
}

Phase ReadPhase(const json::value& value, std::string& error) {
  JsonFields fields(value, error, "phases");
  Phase phase;
  ReadText(fields, "name", phase.name);
  fields.Read("begin", phase.begin, Nanos{0});
  fields.Read("end", phase.end, Nanos{0});
  fields.Read("pauses", phase.pauses, Nanos{0});
  fields.Read("began", phase.began);
  fields.Read("ended", phase.ended);
  phase.by = ReadOwner(fields, "by", error, phase.kept);
  fields.Keep(phase.kept);
  if (phase.end != 0 && (phase.end < phase.begin || phase.end - phase.begin < phase.pauses)) {
    fields.Wrong("phases", "an end after the begin");
  }
  if (phase.end == 0 && phase.pauses != 0) fields.Wrong("phases", "no pauses before an end");
  return phase;
}

Remark ReadRemark(const json::value& value, std::string& error) {
  JsonFields fields(value, error, "remarks");
  Remark remark;
  ReadText(fields, "text", remark.text);
  fields.Read("first", remark.first, Nanos{0});
  fields.Read("last", remark.last, Nanos{0});
  fields.Read("count", remark.count);
  remark.by = ReadOwner(fields, "by", error, remark.kept);
  fields.Keep(remark.kept);
  if (remark.last < remark.first) fields.Wrong("remarks", "a last time after the first");
  return remark;
}

RaisedAlarm ReadAlarm(const json::value& value, std::string& error) {
  JsonFields fields(value, error, "alarms");
  RaisedAlarm alarm;
  ReadText(fields, "rule", alarm.rule);
  ReadText(fields, "severity", alarm.severity);
  ReadText(fields, "text", alarm.text);
  const json::value* tags = fields.Find("tags");
  if (const json::object* object = tags == nullptr ? nullptr : tags->if_object()) {
    for (const auto& [key, tag] : *object) {
      const json::string* text = tag.if_string();
      if (text == nullptr || alarm.tags.pairs().size() == kMaxTags || !CheckTag(key, *text).ok()) {
        fields.Wrong("tags", "tags");
        break;
      }
      alarm.tags.Set(key, *text);
    }
  }
  fields.Read("raised", alarm.raised, Nanos{0});
  fields.Read("over", alarm.over, Nanos{0});
  alarm.value = std::nan("");
  fields.Read("value", alarm.value);
  alarm.by = ReadOwner(fields, "by", error, alarm.kept);
  fields.Keep(alarm.kept);
  if (alarm.over != 0 && alarm.over < alarm.raised) fields.Wrong("over", "an end after the begin");
  return alarm;
}

bool ReadBucket(const json::value& value, uint64_t& next, Sketch& sketch) {
  const json::array* pair = value.if_array();
  if (pair == nullptr || pair->size() != 2) return false;
  json::error_code error;
  const auto bucket = (*pair)[0].to_number<uint64_t>(error);
  if (error || (*pair)[0].is_double() || bucket < next || bucket >= histogram::kBuckets) {
    return false;
  }
  const auto count = (*pair)[1].to_number<uint64_t>(error);
  if (error || (*pair)[1].is_double() || count == 0) return false;
  sketch.Add(static_cast<uint32_t>(bucket), count);
  next = bucket + 1;
  return true;
}

NamedSketch ReadDistribution(const json::value& value, std::string& error, KeptMembers& kept) {
  JsonFields fields(value, error, "distributions");
  NamedSketch distribution;
  ReadSeriesFields(fields, distribution.series, kept);
  Sketch& sketch = distribution.sketch;
  if (const json::array* buckets = fields.Array("buckets", histogram::kBuckets)) {
    uint64_t next = 0;
    for (const json::value& bucket : *buckets) {
      if (ReadBucket(bucket, next, sketch)) continue;
      fields.Wrong("buckets", "pairs of a bucket and a count, by bucket");
      break;
    }
  }
  double sum = 0;
  double min = std::nan("");
  double max = min;
  fields.Read("sum", sum);
  fields.Read("min", min);
  fields.Read("max", max);
  sketch.AddSum(sum, min, max);
  fields.Skip({"count", "p50", "p90", "p99"});
  fields.Keep(kept);
  return distribution;
}

std::string NameOf(const NamedSketch& distribution) {
  return SeriesName(distribution.series.metric.name, distribution.series.tags);
}

void ReadDistributions(JsonFields& fields, StepMoments& moments, std::string& error) {
  const json::array* values = fields.Array("distributions", kMaxEach);
  if (values == nullptr) return;
  moments.distributions.reserve(values->size());
  for (const json::value& value : *values) {
    KeptMembers kept;
    moments.distributions.push_back(ReadDistribution(value, error, kept));
    if (kept.empty()) continue;
    moments.kept_of_distributions[NameOf(moments.distributions.back())] = std::move(kept);
  }
}

const KeptMembers& KeptOf(const StepMoments& moments, const NamedSketch& distribution) {
  static const KeptMembers kNone;
  if (moments.kept_of_distributions.empty()) return kNone;
  const auto found = moments.kept_of_distributions.find(NameOf(distribution));
  return found == moments.kept_of_distributions.end() ? kNone : found->second;
}

template <typename T>
void ReadList(JsonFields& fields, std::string_view key, std::vector<T>& list, std::string& error,
              T (*read)(const json::value&, std::string&)) {
  const json::array* values = fields.Array(key, kMaxEach);
  if (values == nullptr) return;
  list.reserve(values->size());
  for (const json::value& value : *values) list.push_back(read(value, error));
}

}  // namespace

void WriteMoments(JsonWriter& w, const StepMoments& moments, const JobDescription& job) {
  w.BeginObject().Key("phases").BeginArray();
  for (const Phase& phase : moments.phases) WritePhase(w, phase, job);
  w.EndArray().Key("remarks").BeginArray();
  for (const Remark& remark : moments.remarks) WriteRemark(w, remark, job);
  w.EndArray().Key("distributions").BeginArray();
  for (const NamedSketch& one : moments.distributions) {
    WriteDistribution(w, one, KeptOf(moments, one));
  }
  w.EndArray().Key("alarms").BeginArray();
  for (const RaisedAlarm& alarm : moments.alarms) WriteAlarm(w, alarm, job);
  w.EndArray().Field("lost", moments.lost).Field("left_out", moments.left_out);
  WriteKept(w, moments.kept);
  w.EndObject();
}

StepMoments ReadMoments(const json::value& value, std::string& error) {
  JsonFields fields(value, error, "moments");
  StepMoments moments;
  ReadList(fields, "phases", moments.phases, error, ReadPhase);
  ReadList(fields, "remarks", moments.remarks, error, ReadRemark);
  ReadDistributions(fields, moments, error);
  ReadList(fields, "alarms", moments.alarms, error, ReadAlarm);
  fields.Read("lost", moments.lost);
  fields.Read("left_out", moments.left_out);
  fields.Keep(moments.kept);
  return moments;
}

}  // namespace sonde
