// Everything that `sonde diff` knows, as JSON; docs/archive.md describes it.
#include <cmath>
#include <utility>

#include "core/text/step_title.h"
#include "profiles/compare/difference.h"
#include "profiles/json/writer.h"

namespace sonde {
namespace {

void WriteGroups(JsonWriter& w, const Difference& diff) {
  w.Key("groups").BeginArray();
  for (const auto& group : diff.groups) {
    w.BeginObject().Field("label", group.label).Key("runs").BeginArray();
    for (const ProfileEntry& entry : group.entries) {
      w.BeginObject().Field("key", entry.key);
      w.Field("title", StepTitle(entry.job.name, entry.job.command));
      w.Key("job").Raw(DescriptionToJson(entry.job)).EndObject();
    }
    w.EndArray().EndObject();
  }
  w.EndArray();
}

void WriteRow(JsonWriter& w, const CompareRow& row) {
  w.BeginObject().Field("section", ToString(row.section)).Field("name", row.name);
  w.Field("unit", row.unit).Field("beyond", row.beyond());
  w.Field("weight", row.weight).Field("standing", ToString(row.standing));
  w.Field("noise_from", row.basis == NoiseBasis::kRuns ? "runs" : "rule");
  w.Key("groups").BeginArray();
  for (const Band& band : row.groups) {
    w.BeginObject().Field("mean", band.mean).Field("min", band.min).Field("max", band.max);
    w.Key("runs").BeginArray();
    for (const double value : band.runs) w.Value(value);
    w.EndArray().EndObject();
  }
  w.EndArray().Key("changes").BeginArray();
  for (const Change& change : row.changes) {
    w.BeginObject().Field("difference", change.difference).Field("noise", change.noise);
    w.Field("ratio", change.difference / row.groups.front().mean);
    w.Field("beyond", change.beyond).EndObject();
  }
  w.EndArray().EndObject();
}

void WriteBands(JsonWriter& w, const std::vector<Band>& bands) {
  w.BeginObject();
  for (const auto& [name, which] :
       {std::pair{"mean", &Band::mean}, {"min", &Band::min}, {"max", &Band::max}}) {
    w.Key(name).BeginArray();
    for (const Band& band : bands) w.Value(band.*which);
    w.EndArray();
  }
  w.EndObject();
}

void WriteSeries(JsonWriter& w, const Difference& diff) {
  std::map<std::string, const BinnedSeries*> all;
  for (const auto& group : diff.groups) {
    for (const BinnedRun& run : group.bins) {
      for (const auto& [name, series] : run) all.emplace(name, &series);
    }
  }
  w.Key("series").BeginArray();
  for (const auto& [name, series] : all) {
    w.BeginObject().Field("name", name).Field("unit", series->series.metric.unit);
    w.Field("per_second", series->PerSecond()).Key("groups").BeginArray();
    for (const auto& group : diff.groups) {
      std::vector<std::vector<double>> runs;
      for (const BinnedRun& run : group.bins) {
        const auto found = run.find(name);
        runs.push_back(found == run.end() ? std::vector<double>(diff.axis.bins, std::nan(""))
                                          : found->second.bins);
      }
      WriteBands(w, BandsOf(runs));
    }
    w.EndArray().EndObject();
  }
  w.EndArray();
}

}  // namespace

std::string DiffToJson(const Difference& diff) {
  std::string out;
  JsonWriter w(out);
  w.BeginObject();
  WriteGroups(w, diff);
  w.Field("noise", NoiseStory(diff)).Field("noise_runs", diff.comparison.known_runs);
  w.Key("rows").BeginArray();
  for (const CompareRow& row : diff.comparison.rows) WriteRow(w, row);
  w.EndArray().Key("axis").BeginObject();
  w.Field("align", diff.phase.empty() ? "start" : "phase:" + diff.phase);
  w.Field("from", -diff.axis.before).Field("to", diff.axis.behind);
  w.Field("bins", diff.axis.bins).Field("bin_seconds", diff.axis.Width()).EndObject();
  WriteSeries(w, diff);
  w.EndObject();
  return out + "\n";
}

}  // namespace sonde
