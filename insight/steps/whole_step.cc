#include "insight/steps/whole_step.h"

#include <cmath>
#include <map>
#include <utility>

#include "insight/steps/watched.h"
#include "profiles/archive/step_numbers.h"

namespace sonde::insight {
namespace {

constexpr size_t kMostOwnSeries = 8;  // of the application

// The step's numbers over time, one row of ticks for each column.
class WholeStep {
 public:
  WholeStep(const Profile& profile, const TickGrid& grid, std::span<const std::string> metrics)
      : grid_(grid) {
    for (const std::string& metric : metrics) AddNamed(profile, metric);
    if (!metrics.empty()) return;
    for (const MainSeries& one : PhaseSeries()) {
      AddColumn(one.series.metric, one.series.name, one.series.unit);
      if (!one.also.empty()) columns_of_[std::string(one.also)] = columns_.size() - 1;
    }
    for (const FootprintEntry& entry : profile.footprint) {
      const Metric& metric = entry.series.metric;
      if (metric.type == MetricType::kHistogram || IsHouseMetric(metric.name)) continue;
      if (columns_of_.contains(metric.name)) continue;
      if (columns_.size() >= PhaseSeries().size() + kMostOwnSeries) break;
      AddOwn(metric);
    }
  }

  Status Read(const Archive& archive, const std::string& key, const JobDescription& job) {
    StepNumbers numbers(job.presence);
    std::vector<double> row;
    SONDE_RETURN_IF_ERROR(
        archive.ReadRows(key, SeriesScope::kReduced, {}, [&](const StoredRow& stored) {
          numbers.Add(stored, row);
          for (const auto& [number, filler] : FillersOf(*stored.schema)) {
            filler->Add(stored.time(), row[number]);
          }
          return Status();
        }));
    rows_.assign(columns_.size(), {});
    for (const auto& [name, one] : fillers_) AddKnown(one.filler.Take(), rows_[one.column]);
    return {};
  }
  // Only columns with values.
  void Take(std::vector<StepColumn>& columns, std::vector<std::vector<double>>& rows) {
    for (size_t c = 0; c < columns_.size(); ++c) {
      if (rows_[c].empty()) continue;
      columns.push_back(columns_[c]);
      rows.push_back(std::move(rows_[c]));
    }
  }

 private:
  struct Filled {
    size_t column;
    TickFiller filler;
  };
  using Fillers = std::vector<std::pair<size_t, TickFiller*>>;

  void AddColumn(std::string_view metric, std::string_view name, std::string_view unit) {
    columns_of_[std::string(metric)] = columns_.size();
    columns_.push_back({std::string(metric), std::string(name), std::string(unit)});
  }
  void AddOwn(const Metric& metric) {
    const bool rate = IsCounting(metric.type);
    AddColumn(metric.name, metric.name, metric.unit + (rate ? "/s" : ""));
  }
  void AddNamed(const Profile& profile, const std::string& name) {
    for (const FootprintEntry& entry : profile.footprint) {
      if (entry.series.metric.name == name && !columns_of_.contains(name)) {
        AddOwn(entry.series.metric);
      }
    }
  }
  const Fillers& FillersOf(const Schema& schema) {
    const auto [at, is_new] = by_schema_.try_emplace(schema.id());
    if (!is_new) return at->second;
    const auto all = StepNumbers::NumbersOf(schema);
    for (size_t i = 0; i < all.size(); ++i) {
      const Series& series = all[i].series;
      const auto column = columns_of_.find(series.metric.name);
      if (column == columns_of_.end() || !all[i].suffix.empty()) continue;
      const std::string* device = series.tags.Find("device");
      if (device != nullptr && *device == "lo") continue;
      const std::string name = SeriesName(series.metric.name, series.tags);
      auto found = fillers_.find(name);
      if (found == fillers_.end()) {
        const bool counts = IsCounting(series.metric.type);
        found = fillers_.emplace(name, Filled{column->second, TickFiller(grid_, counts)}).first;
      }
      at->second.emplace_back(i, &found->second.filler);
    }
    return at->second;
  }

  const TickGrid& grid_;
  std::vector<StepColumn> columns_;
  std::map<std::string, size_t, std::less<>> columns_of_;  // by metric
  std::map<std::string, Filled> fillers_;                  // by series
  std::map<uint64_t, Fillers> by_schema_;
  std::vector<std::vector<double>> rows_;
};

}  // namespace

Status ReadWholeStep(const Archive& archive, const std::string& key, const Profile& profile,
                     const TickGrid& grid, std::span<const std::string> metrics,
                     std::vector<StepColumn>& columns, std::vector<std::vector<double>>& rows) {
  WholeStep whole(profile, grid, metrics);
  SONDE_RETURN_IF_ERROR(whole.Read(archive, key, profile.job));
  whole.Take(columns, rows);
  return {};
}

}  // namespace sonde::insight
