#include "cli/model/text.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "profiles/json/writer.h"
#include "profiles/model/text.h"

namespace sonde::cli {
namespace {

using text::Printable;
using enum text::Table::Align;

using insight::AskedRuns;
using insight::Band;
using insight::kAhead;
using insight::MetricModel;
using insight::Place;

// Names of parameters as they stand in a model: a tag's key may be anything.
std::string ModelText(const AskedRuns& runs, const MetricModel& one) {
  const auto [first, second] = runs.Names();
  return Printable(one.model.Text(first, second));
}

Place Ahead(const AskedRuns& runs) {
  return {kAhead * runs.most.first, runs.parameters.size() > 1 ? kAhead * runs.most.second : 1};
}

// The first words of a warning.
std::string Short(const std::string& warning) { return warning.substr(0, warning.find(':')); }

// Warnings that all models have are told once.
std::vector<std::string> Common(const std::vector<MetricModel>& models) {
  std::vector<std::string> common;
  for (const std::string& warning : models.front().warnings) {
    const bool everywhere = std::all_of(models.begin(), models.end(), [&](const MetricModel& one) {
      return std::find(one.warnings.begin(), one.warnings.end(), warning) != one.warnings.end();
    });
    if (everywhere) common.push_back(warning);
  }
  return common;
}

std::string OwnWarnings(const MetricModel& one, const std::vector<std::string>& common) {
  std::string all;
  for (const std::string& warning : one.warnings) {
    if (std::find(common.begin(), common.end(), warning) != common.end()) continue;
    all += (all.empty() ? "" : ", ") + Short(warning);
  }
  return all;
}

std::string RunsText(const AskedRuns& runs) {
  std::string text = fmt::format("{} {}", runs.runs.size(), runs.runs.size() == 1 ? "run" : "runs");
  for (size_t i = 0; i < runs.parameters.size(); ++i) {
    const double least = i == 0 ? runs.least.first : runs.least.second;
    const double most = i == 0 ? runs.most.first : runs.most.second;
    text += fmt::format("{} {:g} to {:g} {}", i == 0 ? " on" : " and", least, most,
                        Printable(runs.Names()[i]));
  }
  return text;
}

std::string NotesText(const std::vector<std::string>& notes) {
  std::string text;
  for (const std::string& note : notes) text += fmt::format("! {}\n", note);
  return text;
}

std::string Factor(double growth) {
  return growth == 1 ? "same" : fmt::format("x{}", text::Number(growth));
}

std::string BandText(const std::optional<Band>& band, const std::string& unit) {
  if (!band) return "too few runs to tell";
  return fmt::format("{} .. {}", text::Value(band->low, unit), text::Value(band->high, unit));
}

}  // namespace

std::string ModelsToText(const AskedRuns& runs, const std::vector<MetricModel>& models,
                         const Environment& env) {
  std::string out = RunsText(runs) + "\n" + NotesText(runs.notes);
  if (models.empty()) return out + "No metric has that name.\n";
  const std::vector<std::string> common = Common(models);
  out += NotesText(common);
  text::Table table({{"metric", kLeft, true},
                     {"at " + runs.Text(runs.most), kRight},
                     {"at " + runs.Text(Ahead(runs)), kRight},
                     {"growth", kRight},
                     {"model", kLeft, true},
                     {"error", kRight},
                     {"R2", kRight, false, 1},
                     {"beware", kLeft, true, 1}});
  for (const MetricModel& one : models) {
    const bool trend = !one.model.constant();
    table.Row({Printable(one.name), text::Value(one.model.At(runs.most), one.unit),
               text::Value(one.model.At(Ahead(runs)), one.unit), Factor(one.growth),
               trend ? ModelText(runs, one) : "does not depend on it",
               fmt::format("{:.1f} %", one.model.smape),
               trend ? fmt::format("{:.3f}", one.model.adjusted_r2) : "-",
               OwnWarnings(one, common)});
  }
  out += "\n" + table.Render("", env.width);
  out +=
      "\nValues are the models'; error: of the prediction of a size from the others, in the mean.\n"
      "Of metrics that do not depend on it, one in 20 shows a model by chance, at most.\n";
  return out;
}

std::string_view LimitVerdict(double time, const std::optional<Band>& band, double limit) {
  if (!(limit > 0)) return "";
  if (time > limit) return "not enough";
  return !band || band->high > limit ? "perhaps not enough" : "enough";
}

std::string PredictionToText(const AskedRuns& runs, const Prediction& prediction,
                             const Environment& env) {
  const Place& place = prediction.place;
  std::string out =
      fmt::format("{}, {}: from {}\n", Printable(prediction.of), runs.Text(place), RunsText(runs));
  double beyond = 1;
  for (const MetricModel& one : prediction.models) {
    beyond = std::max(beyond, BeyondMeasured(one.model, place));
  }
  out += beyond > 1 ? fmt::format("{:.3g} times beyond what was measured\n", beyond)
                    : "within what was measured\n";
  out += NotesText(runs.notes);
  const std::vector<std::string> common = Common(prediction.models);
  out += NotesText(common);
  text::Table table({{"", kLeft},
                     {"predicted", kRight},
                     {"95 % of runs", kLeft},
                     {"model", kLeft, true},
                     {"beware", kLeft, true, 1}});
  for (const MetricModel& one : prediction.models) {
    const auto band = BandAt(one.model, place);
    table.Row({one.name, text::Value(one.model.At(place), one.unit), BandText(band, one.unit),
               ModelText(runs, one), OwnWarnings(one, common)});
  }
  out += "\n" + table.Render("", env.width);
  const MetricModel& time = prediction.models.front();
  const std::string_view verdict =
      LimitVerdict(time.model.At(place), BandAt(time.model, place), prediction.time_limit);
  if (!verdict.empty()) {
    out += fmt::format("\nThe time limit of {} is {}.\n", text::Seconds(prediction.time_limit),
                       verdict);
  }
  return out;
}

std::string PredictionToJson(const AskedRuns& runs, const Prediction& prediction) {
  std::string out;
  JsonWriter json(out);
  json.BeginObject().Field("of", prediction.of).Key("place");
  WritePlace(json, runs, prediction.place);
  json.Field("beyond", BeyondMeasured(prediction.models.front().model, prediction.place));
  if (prediction.time_limit > 0) {
    const MetricModel& time = prediction.models.front();
    json.Field("time_limit", prediction.time_limit);
    json.Field("time_limit_is",
               LimitVerdict(time.model.At(prediction.place), BandAt(time.model, prediction.place),
                            prediction.time_limit));
  }
  WriteRuns(json, runs);
  json.Key("predictions").BeginArray();
  for (const MetricModel& one : prediction.models) {
    json.BeginObject().Field("value", one.model.At(prediction.place));
    WriteBand(json, "band", BandAt(one.model, prediction.place));
    WriteBand(json, "band_of_mean", MeanBandAt(one.model, prediction.place));
    WriteModel(json, runs, one);
    json.EndObject();
  }
  json.EndArray().EndObject();
  return out + "\n";
}

}  // namespace sonde::cli
