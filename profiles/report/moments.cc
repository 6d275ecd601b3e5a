#include "profiles/report/moments.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "profiles/model/summary.h"
#include "profiles/model/text.h"
#include "profiles/report/calls.h"

namespace sonde {
namespace {

using text::Printable;
using text::Seconds;
using enum text::Table::Align;

constexpr size_t kMaxMomentRows = 16;
// A rank's histogram is recorded as series of these names, too.
constexpr std::array<std::string_view, 5> kParts = {"_count", "_sum", "_p50", "_p99", "_max"};

const FootprintEntry* SecondsOf(const Profile& profile, const std::string& phase) {
  for (const FootprintEntry& e : profile.footprint) {
    if (e.series.metric.name != kPhaseSeconds) continue;
    const std::string* name = e.series.tags.Find("phase");
    if (name != nullptr && *name == phase) return &e;
  }
  return nullptr;
}

double Mean(const Sketch& sketch) {
  return sketch.empty() ? std::nan("") : sketch.sum() / static_cast<double>(sketch.count());
}

double Largest(const Sketch& sketch) {
  return sketch.knows_extremes() ? sketch.max() : std::nan("");
}

std::string More(size_t all, size_t shown, std::string_view what) {
  if (all <= shown) return "";
  return fmt::format("{}and {} {} more; all with --json\n", text::kIndent, all - shown, what);
}

std::vector<PhaseTotal> Totals(const Profile& profile, Nanos end) {
  return PhaseTotals(profile.moments, end, profile.job.state == EndState::kRunning);
}

std::vector<const NamedSketch*> DistributionsOf(const StepMoments& moments, Observed observed) {
  std::vector<const NamedSketch*> shown;
  for (const NamedSketch& one : moments.distributions) {
    const bool counts_calls = CountsCalls(one.series);
    const bool of_mpi = counts_calls && one.series.tags.Find("class") != nullptr;
    if (observed == Observed::kMpi ? of_mpi : !counts_calls) shown.push_back(&one);
  }
  return shown;
}

}  // namespace

std::string FigureValue(const Figure& figure) {
  if (std::isnan(figure.value)) return "-";
  const std::string number = fmt::format("{:.6g}", figure.value);
  if (figure.unit.empty() || figure.unit == "1") return number;
  return number + " " + Printable(figure.unit);
}

bool IsToldAbove(const Profile& profile, const FootprintEntry& entry) {
  const Metric& metric = entry.series.metric;
  const Tags& tags = entry.series.tags;
  if (metric.name == kPhaseSeconds) {
    const std::string* name = tags.Find("phase");
    const auto& phases = profile.moments.phases;
    return name != nullptr && std::any_of(phases.begin(), phases.end(),
                                          [&](const Phase& phase) { return phase.name == *name; });
  }
  const size_t end = metric.name.rfind('_');
  if (end == std::string::npos) return false;
  const std::string_view part = std::string_view(metric.name).substr(end);
  if (std::find(kParts.begin(), kParts.end(), part) == kParts.end()) return false;
  const auto& all = profile.moments.distributions;
  return std::any_of(all.begin(), all.end(), [&](const NamedSketch& one) {
    return one.series.tags == tags &&
           metric.name.size() == one.series.metric.name.size() + part.size() &&
           metric.name.starts_with(one.series.metric.name);
  });
}

std::string PhaseTable(const Profile& profile, Nanos end, double duration, size_t width) {
  const std::vector<PhaseTotal> totals = Totals(profile, end);
  if (totals.empty()) return "";
  text::Table table({{"phase", kLeft, true},
                     {"times", kRight},
                     {"seconds", kRight},
                     {"share", kRight},
                     {"shortest", kRight},
                     {"longest", kRight},
                     {"longest on", kLeft, true}});
  const size_t shown = std::min(totals.size(), kMaxMomentRows);
  for (size_t i = 0; i < shown; ++i) {
    const PhaseTotal& phase = totals[i];
    const FootprintEntry* task = SecondsOf(profile, phase.name);
    table.Row({Printable(phase.name), std::to_string(phase.began),
               fmt::format("{:.2f}", phase.seconds), text::Percent(phase.seconds / duration),
               task == nullptr ? "" : Seconds(task->min), task == nullptr ? "" : Seconds(task->max),
               task == nullptr ? "" : Printable(OwnerName(task->max_owner, profile.job))});
  }
  return table.Render("", width) + More(totals.size(), shown, "phases");
}

std::string DistributionTable(const StepMoments& moments, Observed observed, size_t width) {
  const auto all = DistributionsOf(moments, observed);
  if (all.empty()) return "";
  text::Table table({{"histogram", kLeft, true},
                     {"count", kRight},
                     {"mean", kRight},
                     {"p50", kRight},
                     {"p90", kRight, false, 1},
                     {"p99", kRight},
                     {"max", kRight, false, 1}});
  const size_t shown = std::min(all.size(), kMaxMomentRows);
  for (size_t i = 0; i < shown; ++i) {
    const Series& series = all[i]->series;  // no bindings: Clang 14 lets no lambda have them
    const Sketch& sketch = all[i]->sketch;
    const auto value = [&](double v) { return text::Value(v, series.metric.unit); };
    table.Row({Printable(SeriesName(series.metric.name, series.tags)),
               std::to_string(sketch.count()), value(Mean(sketch)), value(sketch.Quantile(0.5)),
               value(sketch.Quantile(0.9)), value(sketch.Quantile(0.99)), value(Largest(sketch))});
  }
  return table.Render("", width) + More(all.size(), shown, "histograms");
}

void WriteMomentsReport(JsonWriter& w, const Profile& profile, Nanos end, double duration) {
  w.Key("figures").BeginArray();
  for (const Figure& figure : profile.job.figures) {
    w.BeginObject().Field("name", figure.name).Field("value", figure.value);
    w.Field("unit", figure.unit).EndObject();
  }
  w.EndArray().Key("phases").BeginArray();
  for (const PhaseTotal& phase : Totals(profile, end)) {
    w.BeginObject().Field("name", phase.name).Field("seconds", phase.seconds);
    w.Field("share", phase.seconds / duration);
    w.Field("began", phase.began).Field("ended", phase.ended);
    if (const FootprintEntry* task = SecondsOf(profile, phase.name)) {
      w.Field("least_seconds", task->min).Field("most_seconds", task->max);
      w.Field("least_by", OwnerName(task->min_owner, profile.job));
      w.Field("most_by", OwnerName(task->max_owner, profile.job));
    }
    w.EndObject();
  }
  w.EndArray().Key("distributions").BeginArray();
  for (const auto& [series, sketch] : profile.moments.distributions) {
    w.BeginObject().Field("metric", series.metric.name);
    w.Key("tags").BeginObject();
    for (const auto& [key, value] : series.tags.pairs()) w.Field(key, value);
    w.EndObject().Field("unit", series.metric.unit).Field("count", sketch.count());
    w.Field("sum", sketch.sum()).Field("mean", Mean(sketch));
    w.Field("p50", sketch.Quantile(0.5)).Field("p90", sketch.Quantile(0.9));
    w.Field("p99", sketch.Quantile(0.99)).Field("max", Largest(sketch)).EndObject();
  }
  w.EndArray();
}

}  // namespace sonde
