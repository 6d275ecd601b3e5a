// A finished step whose series a test or benchmark makes, with the reduced series and the footprint
// that the head would have made of them.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "profiles/live/live_archive.h"
#include "profiles/model/footprint.h"
#include "profiles/records/stored_bytes.h"
#include "series/store/task_ranks.h"
#include "tests/unit/profiles_fixture.h"

namespace sonde {

inline constexpr int kStepTicks = 120;
inline const Tags kTask = {{"task", "0"}};  // in a block ranks count from the node's first
inline const Tags kUserTask = {{"mode", "user"}, {"task", "0"}};

// One task on each node, a row a second, or further apart, as nodes of large steps thin them. What
// is given are rates per second, or the values of gauges, by rank and row; NaN: the node has no
// value then.
class StepOf {
 public:
  using Rate = std::function<double(uint32_t rank, int tick)>;

  explicit StepOf(uint32_t nodes, int ticks = kStepTicks, int seconds_apart = 1)
      : ticks_(ticks), seconds_apart_(seconds_apart) {
    job = TestJob();
    job.nodes.clear();
    for (uint32_t i = 0; i < nodes; ++i) {
      NodeInfo& node = job.nodes.emplace_back();
      node.host = "n" + std::to_string(i);
      node.tasks = 1;
      node.joined = job.start;
    }
    job.expected_nodes = job.expected_tasks = nodes;
    job.end = job.start + Nanos{ticks} * seconds_apart * kSecond;
    job.state = EndState::kCompleted;
  }
  // Of each task, or of each node.
  void Counter(const std::string& group, std::string_view name, Tags tags, Rate rate) {
    Add(group, TestSeries(name, MetricType::kCounter, std::move(tags)), std::move(rate));
  }
  void Gauge(const std::string& group, std::string_view name, Tags tags, Rate value,
             Reduction reduction = Reduction::kSum) {
    Add(group, TestSeries(name, MetricType::kGauge, std::move(tags), reduction), std::move(value));
  }

  Status Store(const std::string& root) const {
    auto live = LiveArchive::Create(root, job);
    if (!live.ok()) return live.status();
    Profile profile;
    profile.job = job;
    profile.moments = moments;
    for (const auto& [group, measured] : groups_) {
      std::vector<std::vector<double>> of_nodes;
      for (uint32_t node = 0; node < job.nodes.size(); ++node) {
        of_nodes.push_back(ColumnsOf(measured, node));
        const auto schema = Schema::Make(SeriesOf(measured));
        SONDE_RETURN_IF_ERROR(
            (*live)->PutBlock({node, HasTasks(*schema) ? GroupFrom(node, group) : group, 1},
                              *schema, MakeBlock(*schema, Times(), of_nodes.back())));
      }
      SONDE_RETURN_IF_ERROR(PutReduced(**live, group, measured, of_nodes, profile));
    }
    profile.cost.stored_bytes = StoredBytes((*live)->content_bytes(), profile);
    SONDE_RETURN_IF_ERROR((*live)->PutProfile(profile));
    return (*live)->Finish();
  }

  void Write(const std::string& root) const {
    const Status stored = Store(root);
    EXPECT_TRUE(stored.ok()) << stored.message();
  }

  JobDescription job;
  StepMoments moments;

 private:
  struct Measured {
    Series series;
    Rate rate;
  };
  void Add(const std::string& group, Series series, Rate rate) {
    groups_[group].push_back({std::move(series), std::move(rate)});
  }
  std::vector<Nanos> Times() const {
    std::vector<Nanos> times;
    for (int i = 1; i <= ticks_; ++i)
      times.push_back(job.start + Nanos{i} * seconds_apart_ * kSecond);
    return times;
  }
  static std::vector<Series> SeriesOf(const std::vector<Measured>& measured) {
    std::vector<Series> out;
    for (const Measured& one : measured) out.push_back(one.series);
    return out;
  }
  std::vector<double> ColumnsOf(const std::vector<Measured>& measured, uint32_t node) const {
    std::vector<double> out;
    for (const Measured& one : measured) {
      double sum = 0;
      for (int tick = 1; tick <= ticks_; ++tick) {
        const double value = one.rate(node, tick);
        if (!std::isnan(value)) sum += value * seconds_apart_;
        const bool counts = one.series.metric.type == MetricType::kCounter;
        out.push_back(counts && !std::isnan(value) ? sum : value);
      }
    }
    return out;
  }
  // The reduced series of a group, and their part of the footprint.
  Status PutReduced(LiveArchive& live, const std::string& group,
                    const std::vector<Measured>& measured,
                    const std::vector<std::vector<double>>& of_nodes, Profile& profile) const {
    std::vector<Series> series = SeriesOf(measured);
    for (Series& one : series) one.tags.Erase("task");
    const auto schema = ReducedSchema(series);
    const auto ticks = static_cast<size_t>(ticks_);
    std::vector<double> columns(schema->size() * ticks);
    FootprintBuilder footprint(job.start);
    footprint.SetSeries(series);
    const std::vector<Nanos> times = Times();
    for (size_t tick = 0; tick < ticks; ++tick) {
      std::vector<Reduced> row(series.size());
      for (size_t s = 0; s < series.size(); ++s) {
        for (uint32_t node = 0; node < of_nodes.size(); ++node) {
          const bool of_task = measured[s].series.tags.Find("task") != nullptr;
          row[s].Add(of_nodes[node][s * ticks + tick], {node, of_task ? node : Owner::kNobody});
        }
        double stats[kStatColumns];
        ToColumns(row[s], stats);
        for (size_t k = 0; k < kStatColumns; ++k) {
          columns[(s * kStatColumns + k) * ticks + tick] = stats[k];
        }
      }
      footprint.AddRow(times[tick], row);
    }
    for (FootprintEntry& entry : footprint.Entries()) profile.footprint.push_back(std::move(entry));
    return live.PutBlock({kReducedNode, group, 1}, *schema, MakeBlock(*schema, times, columns));
  }

  int ticks_;
  int seconds_apart_;
  std::map<std::string, std::vector<Measured>> groups_;
};

}  // namespace sonde
