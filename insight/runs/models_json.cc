// Models as JSON; docs/endpoints.md describes it.
#include <cmath>
#include <utility>

#include "insight/runs/modelled_runs.h"

namespace sonde::insight {
namespace {

void WriteTexts(JsonWriter& json, std::string_view key, const std::vector<std::string>& texts) {
  json.Key(key).BeginArray();
  for (const std::string& text : texts) json.Value(text);
  json.EndArray();
}

void WriteTerm(JsonWriter& json, std::string_view name, const std::optional<ScaleTerm>& term) {
  if (!term) return;
  json.Key(name).BeginObject().Field("numerator", term->numerator);
  json.Field("denominator", term->denominator).Field("logs", term->logs).EndObject();
}

// At so many sizes, in equal ratios, from the least that was measured to kAhead times the most.
constexpr int kCurvePoints = 33;

// The model's curve and its band of one run, with one parameter.
void WriteCurve(JsonWriter& json, const ScalingModel& model) {
  const double least = model.least.first, most = kAhead * model.most.first;
  json.Key("curve").BeginArray();
  for (int i = 0; i < kCurvePoints; ++i) {
    const double size = least * std::pow(most / least, i / (kCurvePoints - 1.0));
    const std::optional<Band> band = BandAt(model, {size, 1});
    json.BeginArray().Value(size).Value(model.At(size));
    json.Value(band ? band->low : kMissing).Value(band ? band->high : kMissing).EndArray();
  }
  json.EndArray();
}

}  // namespace

void WriteBand(JsonWriter& json, std::string_view key, const std::optional<Band>& band) {
  json.Key(key);
  if (!band) {
    json.Null();
    return;
  }
  json.BeginArray().Value(band->low).Value(band->high).EndArray();
}

void WritePlace(JsonWriter& json, const AskedRuns& runs, const Place& place) {
  json.BeginObject().Field(runs.Names()[0], place.first);
  if (runs.parameters.size() > 1) json.Field(runs.Names()[1], place.second);
  json.EndObject();
}

void WriteRuns(JsonWriter& json, const AskedRuns& runs) {
  json.Key("runs").BeginArray();
  for (size_t i = 0; i < runs.runs.size(); ++i) {
    const JobDescription& job = runs.runs[i].profile.job;
    json.BeginObject().Field("job", job.id.job).Field("step", job.id.step).Key("place");
    WritePlace(json, runs, runs.places[i]);
    json.EndObject();
  }
  json.EndArray();
  WriteTexts(json, "notes", runs.notes);
}

void WriteModel(JsonWriter& json, const AskedRuns& runs, const MetricModel& one) {
  const ScalingModel& model = one.model;
  const auto [first, second] = runs.Names();
  json.Field("metric", one.name).Field("section", ToString(one.section)).Field("unit", one.unit);
  json.Field("model", model.Text(first, second)).Field("constant", model.curve.constant());
  json.Key("terms").BeginArray();
  for (size_t i = 0; i < model.curve.products().size(); ++i) {
    json.BeginObject().Field("coefficient", model.curve.coefficient(i));
    WriteTerm(json, first, model.curve.products()[i].first);
    WriteTerm(json, second, model.curve.products()[i].second);
    json.EndObject();
  }
  json.EndArray().Field("growth", one.growth).Field("chance", model.chance);
  json.Field("smape", model.smape).Field("adjusted_r2", model.adjusted_r2).Field("rss", model.rss);
  json.Field("noise", model.noise).Field("runs", model.runs).Field("left_out", model.left_out);
  WriteTexts(json, "warnings", one.warnings);
  json.Key("values").BeginArray();
  for (const double value : one.values) json.Value(value);
  json.EndArray();
  if (runs.parameters.size() == 1) WriteCurve(json, model);
}

std::string ModelsToJson(const AskedRuns& runs, const std::vector<MetricModel>& models) {
  std::string out;
  JsonWriter json(out);
  json.BeginObject();
  WriteTexts(json, "parameters",
             runs.parameters.size() > 1 ? std::vector<std::string>{runs.Names()[0], runs.Names()[1]}
                                        : std::vector<std::string>{runs.Names()[0]});
  WriteRuns(json, runs);
  json.Key("models").BeginArray();
  for (const MetricModel& one : models) {
    json.BeginObject();
    WriteModel(json, runs, one);
    json.EndObject();
  }
  json.EndArray().EndObject();
  return out + "\n";
}

}  // namespace sonde::insight
