#include "insight/steps/step_phases.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "insight/change_points.h"
#include "insight/steps/whole_step.h"
#include "profiles/json/writer.h"

namespace sonde::insight {
namespace {

constexpr double kEnough = 0.5;  // of the ticks, for a series to show phases

// Means over ticks, of all columns.
class Means {
 public:
  explicit Means(size_t columns) : sums_(columns), counts_(columns) {}
  void Add(const std::vector<std::vector<double>>& rows, size_t begin, size_t end) {
    for (size_t c = 0; c < rows.size(); ++c) {
      for (size_t t = begin; t < std::min(end, rows[c].size()); ++t) {
        if (std::isnan(rows[c][t])) continue;
        sums_[c] += rows[c][t];
        ++counts_[c];
      }
    }
  }
  std::vector<double> Take() const {
    std::vector<double> out(sums_.size(), std::numeric_limits<double>::quiet_NaN());
    for (size_t c = 0; c < out.size(); ++c) {
      if (counts_[c] > 0) out[c] = sums_[c] / counts_[c];
    }
    return out;
  }

 private:
  std::vector<double> sums_, counts_;
};

double SecondsOf(Nanos from, Nanos to) { return static_cast<double>(to - from) / kSecond; }

// Those that the application told, all intervals of one name together.
std::vector<PhaseFigures> ToldBy(const Profile& profile, const TickGrid& grid,
                                 const std::vector<std::vector<double>>& rows) {
  std::vector<PhaseFigures> out;
  std::vector<Means> means;
  for (const Phase& phase : profile.moments.phases) {
    const Nanos end = std::max(phase.begin, phase.end != 0 ? phase.end : profile.job.end);
    size_t at = 0;
    while (at < out.size() && out[at].name != phase.name) ++at;
    if (at == out.size()) {
      out.push_back({phase.name, phase.begin, end, 0, 0, {}});
      means.emplace_back(rows.size());
    }
    out[at].end = std::max(out[at].end, end);
    out[at].seconds += SecondsOf(phase.begin, end) - SecondsOf(0, phase.pauses);
    ++out[at].intervals;
    // The ticks that it fills at least in half.
    const size_t first = grid.At(phase.begin + grid.width / 2);
    const size_t last = grid.At(end - grid.width / 2);
    means[at].Add(rows, first, std::max(first, last) + 1);
  }
  for (size_t i = 0; i < out.size(); ++i) out[i].means = means[i].Take();
  return out;
}

Result<std::vector<PhaseFigures>> FoundIn(const Profile& profile, const TickGrid& grid,
                                          const std::vector<std::vector<double>>& main_rows,
                                          const std::vector<std::vector<double>>& rows) {
  std::vector<std::vector<double>> main;
  for (const std::vector<double>& row : main_rows) {
    const auto there =
        std::count_if(row.begin(), row.end(), [](double x) { return !std::isnan(x); });
    if (static_cast<double>(there) >= kEnough * static_cast<double>(row.size()))
      main.push_back(row);
  }
  std::vector<PhaseFigures> out;
  if (main.empty()) return out;
  const auto segments = FindSegments(main);
  if (!segments.ok()) return segments.status();
  for (const Segment& segment : *segments) {
    Means means(rows.size());
    means.Add(rows, segment.begin, segment.end);
    const Nanos begin = std::max(grid.Begin(segment.begin), profile.job.start);
    const Nanos end = std::min(grid.Begin(segment.end), profile.job.end);
    out.push_back(
        {std::to_string(out.size() + 1), begin, end, SecondsOf(begin, end), 1, means.Take()});
  }
  return out;
}

void WritePhases(JsonWriter& json, std::string_view name, const std::vector<PhaseFigures>& phases) {
  json.Key(name).BeginArray();
  for (const PhaseFigures& phase : phases) {
    json.BeginObject().Field("name", phase.name).Field("begin", phase.begin);
    json.Field("end", phase.end).Field("seconds", phase.seconds);
    json.Field("intervals", phase.intervals).Key("means").BeginArray();
    for (const double mean : phase.means) json.Value(mean);
    json.EndArray().EndObject();
  }
  json.EndArray();
}

}  // namespace

Result<StepPhases> PhasesOf(const Archive& archive, const std::string& key,
                            const Profile& profile) {
  StepPhases out;
  out.grid = GridOf(profile.job, kMostStepTicks);
  std::vector<std::vector<double>> rows;
  SONDE_RETURN_IF_ERROR(ReadWholeStep(archive, key, profile, out.grid, {}, out.columns, rows));
  out.told = ToldBy(profile, out.grid, rows);
  auto found = FoundIn(profile, out.grid, rows, rows);
  if (!found.ok()) return found.status();
  out.found = *std::move(found);
  return out;
}

Result<StepPhases> PhasesWith(const Archive& archive, const std::string& key,
                              const Profile& profile, std::span<const std::string> metrics) {
  StepPhases out;
  out.grid = GridOf(profile.job, kMostStepTicks);
  std::vector<StepColumn> main_columns;
  std::vector<std::vector<double>> main;
  SONDE_RETURN_IF_ERROR(ReadWholeStep(archive, key, profile, out.grid, {}, main_columns, main));
  std::vector<std::vector<double>> rows;
  SONDE_RETURN_IF_ERROR(ReadWholeStep(archive, key, profile, out.grid, metrics, out.columns, rows));
  out.told = ToldBy(profile, out.grid, rows);
  auto found = FoundIn(profile, out.grid, main, rows);
  if (!found.ok()) return found.status();
  out.found = *std::move(found);
  return out;
}

std::string PhasesToJson(const StepPhases& all, const Profile& profile) {
  std::string out;
  JsonWriter json(out);
  json.BeginObject().Field("step", profile.job.id.ToString());
  json.Field("tick", all.grid.width).Key("columns").BeginArray();
  for (const StepColumn& column : all.columns) {
    json.BeginObject().Field("metric", column.metric).Field("name", column.name);
    json.Field("unit", column.unit).EndObject();
  }
  json.EndArray();
  WritePhases(json, "told", all.told);
  WritePhases(json, "found", all.found);
  json.EndObject();
  out += "\n";
  return out;
}

}  // namespace sonde::insight
