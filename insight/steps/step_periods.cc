#include "insight/steps/step_periods.h"

#include <algorithm>
#include <utility>

#include "profiles/json/writer.h"

namespace sonde::insight {

Result<StepPeriods> PeriodsOf(const Archive& archive, const std::string& key,
                              const Profile& profile, std::span<const std::string> metrics) {
  StepPeriods out;
  out.grid = GridOf(profile.job, kMostStepTicks);
  std::vector<StepColumn> columns;
  std::vector<std::vector<double>> rows;
  SONDE_RETURN_IF_ERROR(ReadWholeStep(archive, key, profile, out.grid, metrics, columns, rows));
  for (size_t i = 0; i < columns.size(); ++i) {
    Result<Periodicity> found = FindPeriod(rows[i], out.grid.Seconds());
    if (!found.ok()) return found.status();
    out.all.push_back({std::move(columns[i]), *std::move(found)});
  }
  const auto sureness = [](const StepPeriod& one) {
    return one.found.dominant ? one.found.correlation : -1;
  };
  std::stable_sort(out.all.begin(), out.all.end(), [&](const StepPeriod& a, const StepPeriod& b) {
    return sureness(a) > sureness(b);
  });
  return out;
}

namespace {

// The strongest waves: cosines of that amplitude, in the metric's unit.
void WriteWaves(JsonWriter& json, const Periodicity& found) {
  json.Key("waves").BeginArray();
  for (const Wave& wave : found.strongest) {
    if (!(wave.frequency > 0) || !(wave.amplitude > 0)) continue;
    json.BeginObject().Field("frequency_hertz", wave.frequency);
    json.Field("amplitude", 2 * wave.amplitude / static_cast<double>(found.samples));
    json.Field("confidence", wave.confidence).EndObject();
  }
  json.EndArray();
}

}  // namespace

std::string PeriodsToJson(const StepPeriods& periods, const Profile& profile) {
  std::string out;
  JsonWriter json(out);
  json.BeginObject().Field("step", profile.job.id.ToString());
  json.Field("tick", periods.grid.width).Key("metrics").BeginArray();
  for (const StepPeriod& one : periods.all) {
    const Periodicity& found = one.found;
    json.BeginObject().Field("metric", one.column.metric).Field("name", one.column.name);
    json.Field("unit", one.column.unit);
    if (found.dominant && found.period) {
      json.Field("period_seconds", *found.period).Field("frequency_hertz", 1 / *found.period);
      json.Field("confidence", found.dominant->confidence).Field("correlation", found.correlation);
    } else {
      json.Field("why_not", found.why_not);
    }
    WriteWaves(json, found);
    json.EndObject();
  }
  json.EndArray().EndObject();
  out += "\n";
  return out;
}

}  // namespace sonde::insight
