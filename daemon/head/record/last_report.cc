#include "daemon/head/record/last_report.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>

#include "core/log.h"
#include "insight/hints/hints.h"
#include "insight/hints/profile_facts.h"
#include "insight/hints/step_facts.h"
#include "insight/steps/tick_grid.h"
#include "profiles/model/summary.h"
#include "profiles/report/report.h"

namespace sonde::head {
namespace {

constexpr uint32_t kNarrowest = 40;  // columns; `sonde show` writes no narrower either

// Of the whole step, at each tick; empty: there is none.
std::vector<double> RowOf(const StepRecord& record, const insight::TickGrid& grid,
                          std::string_view metric) {
  const auto wanted = [&](const Series& series) {
    const std::string* const stat = series.tags.Find(kStatTag);
    return series.metric.name == metric && stat != nullptr && *stat == "sum";
  };
  std::vector<double> row;
  for (const SeriesData& data : record.Read(wanted, 0, std::numeric_limits<Nanos>::max())) {
    insight::TickFiller filler(grid, IsCounting(data.series.metric.type));
    for (const Point& point : data.points) filler.Add(point.time, point.value);
    insight::AddKnown(filler.Take(), row);
  }
  return row;
}

// An application's series over the step's time.
struct Line {
  const Metric* metric;
  std::vector<double> values, counts;

  // The column of the reduced series that has the step's number; of a mean it is divided by
  // "count".
  std::string_view stat() const {
    return IsCounting(metric->type) || is_mean() ? "sum" : ToString(metric->reduction);
  }
  bool is_mean() const {
    return !IsCounting(metric->type) && metric->reduction == Reduction::kMean;
  }
  std::vector<double> Take() {
    if (is_mean()) {
      counts.resize(values.size());
      for (size_t i = 0; i < values.size(); ++i) values[i] /= counts[i];  // 0 by 0: missing
    }
    return std::move(values);
  }
};

std::map<std::string, std::vector<double>> SparklinesOf(const StepRecord& record,
                                                        const Profile& profile) {
  std::map<std::string, Line> lines;
  for (const FootprintEntry* entry : ApplicationEntries(profile)) {
    const Series& series = entry->series;
    lines.emplace(SeriesName(series.metric.name, series.tags), Line{&series.metric, {}, {}});
  }
  std::map<std::string, std::vector<double>> drawn;
  if (lines.empty()) return drawn;
  const auto find = [&](const Series& series) {
    Tags tags = series.tags;
    tags.Erase(kStatTag);
    return lines.find(SeriesName(series.metric.name, tags));
  };
  const auto wanted = [&](const Series& series) {
    const std::string* const stat = series.tags.Find(kStatTag);
    if (stat == nullptr) return false;
    const auto line = find(series);
    return line != lines.end() && (*stat == line->second.stat() || *stat == "count");
  };
  const insight::TickGrid grid = insight::GridOf(profile.job, kSparklinePoints);
  for (const SeriesData& data : record.Read(wanted, 0, std::numeric_limits<Nanos>::max())) {
    Line& line = find(data.series)->second;
    const bool is_count = *data.series.tags.Find(kStatTag) == "count";
    insight::TickFiller filler(grid, !is_count && IsCounting(line.metric->type));
    for (const Point& point : data.points) filler.Add(point.time, point.value);
    insight::AddKnown(filler.Take(), is_count ? line.counts : line.values);
  }
  for (auto& [name, line] : lines) drawn.emplace(name, line.Take());
  return drawn;
}

std::vector<ReportHint> HintsOf(const StepRecord& record, const Profile& profile,
                                const std::string& config_path) {
  const JobDescription& job = profile.job;
  const bool completed = job.state == EndState::kCompleted;
  if (completed && job.end - job.start < kShortestForHints) return {};
  const auto rules = insight::LoadHintRules(
      {(std::filesystem::path(config_path).parent_path() / "hints.d").string()});
  if (!rules.ok()) {
    log::Warning("there are no hints: {}", rules.status().message());
    return {};
  }
  insight::Facts facts = insight::FactsOfProfile(profile, Summarize(profile, {}, job.end));
  const insight::TickGrid grid = insight::GridOf(job, insight::kMostHintTicks);
  insight::AddCpuFacts(RowOf(record, grid, "task_cpu_seconds_total"), facts);
  insight::AddGrowthFacts(RowOf(record, grid, "task_resident_memory_bytes"), grid.Seconds(), facts);
  return insight::ForReport(insight::FindHints(*rules, facts));
}

}  // namespace

std::string ReportOf(const StepRecord& record, bool brief, uint32_t columns,
                     const std::string& config_path) {
  const Profile profile = record.Snapshot();
  ReportOptions options;
  if (columns > 0) options.width = std::max(columns, kNarrowest);
  if (brief) {
    options.form = ReportOptions::Form::kShort;
  } else {
    options.sparklines = SparklinesOf(record, profile);
  }
  options.hints = HintsOf(record, profile, config_path);
  return RenderReport(profile, options);
}

}  // namespace sonde::head
