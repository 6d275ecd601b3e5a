#include "insight/steps/step_rows.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "insight/steps/read_pieces.h"
#include "profiles/model/shown_series.h"
#include "series/store/task_ranks.h"

namespace sonde::insight {
namespace {

bool HasTag(const Series& series, const WatchedSeries& watched) {
  const std::string* device = series.tags.Find("device");
  if (device != nullptr && *device == "lo") return false;
  if (series.tags.Find("cpu") != nullptr) return false;  // level 4: counted twice
  if (watched.tag.empty()) return true;
  const std::string* value = series.tags.Find(watched.tag);
  if (value == nullptr) return false;
  if (watched.value == "busy") return *value != "idle" && *value != "iowait" && *value != "steal";
  return *value == watched.value;
}

bool IsWatched(const Series& series, const WatchedSeries& watched) {
  return series.metric.name == watched.metric && HasTag(series, watched);
}

// Whose series it is: the rank or the node's index.
std::optional<uint32_t> OwnerOf(const Series& series, RowsBy by,
                                const std::map<std::string, size_t>& nodes) {
  if (by == RowsBy::kNode) {
    const std::string* host = series.tags.Find("host");
    const auto found = host == nullptr ? nodes.end() : nodes.find(*host);
    if (found == nodes.end()) return std::nullopt;
    return static_cast<uint32_t>(found->second);
  }
  const std::string* task = series.tags.Find(kTaskTag);
  if (task == nullptr) return std::nullopt;
  uint32_t rank = 0;
  const auto [end, error] = std::from_chars(task->data(), task->data() + task->size(), rank);
  if (error != std::errc() || end != task->data() + task->size()) return std::nullopt;
  return rank;
}

struct Filling {
  Series series;
  TickFiller filler;
};

struct OneRow {
  std::string host;
  Row row;
};

std::map<std::string, size_t> NodesByHost(const JobDescription& job,
                                          const std::set<size_t>& nodes) {
  std::map<std::string, size_t> out;
  for (size_t i = 0; i < job.nodes.size(); ++i) {
    if (nodes.empty() || nodes.contains(i))
      out.emplace(HostOfNode(job, static_cast<uint32_t>(i)), i);
  }
  return out;
}

class Reading {
 public:
  // All of these outlive it.
  Reading(const JobDescription& job, const TickGrid& grid, std::span<const AskedRows> asked,
          const std::set<size_t>& nodes)
      : job_(job),
        grid_(grid),
        asked_(asked),
        by_host_(NodesByHost(job, nodes)),
        rows_(asked.size()) {
    for (const AskedRows& one : asked) metrics_.insert(one.watched.metric);
  }

  Status Read(const Archive& archive, const std::string& key, size_t most_points) {
    const auto begins = BeginsOfPieces(archive, key, most_points);
    if (!begins.ok()) return begins.status();
    const SeriesWanted wanted([&](const Metric& metric) { return metrics_.contains(metric.name); },
                              [&](const Series& series) { return IsWanted(series); });
    for (size_t i = 0; i < begins->size(); ++i) {
      const bool last = i + 1 == begins->size();
      auto data = archive.Read(key, SeriesScope::kNodes, wanted, (*begins)[i],
                               last ? std::numeric_limits<Nanos>::max() : (*begins)[i + 1] - 1,
                               Thinned::kMean);
      if (!data.ok()) return data.status();
      if (begins->size() == 1) {
        AddWhole(*data);
      } else {
        for (const SeriesData& one : *data) AddPiece(one);
      }
    }
    for (const auto& [name, filling] : fillings_) AddRow(filling.series, filling.filler.Take());
    return {};
  }

  std::vector<StepRows> Take() {
    std::vector<StepRows> out(asked_.size());
    for (size_t i = 0; i < asked_.size(); ++i) {
      for (auto& [owner, row] : rows_[i]) {
        out[i].who.push_back({owner, row.host, by_host_.at(row.host)});
        out[i].rows.push_back(std::move(row.row));
      }
    }
    return out;
  }

 private:
  bool IsAsked(const Series& series) const {
    return metrics_.contains(series.metric.name) &&
           std::any_of(asked_.begin(), asked_.end(),
                       [&](const AskedRows& one) { return IsWatched(series, one.watched); });
  }
  bool IsWanted(const Series& series) const {
    const std::string* host = series.tags.Find("host");
    return host != nullptr && by_host_.contains(*host) && IsAsked(series);
  }

  // If the step were measured at each tick, with a series for each task.
  size_t PointsAtMost() const {
    const size_t nodes = std::max<size_t>(1, job_.nodes.size());
    const size_t rows = 1 + std::max<size_t>(nodes, job_.expected_tasks) * by_host_.size() / nodes;
    const Nanos length = std::max(job_.end, job_.start) + grid_.width - grid_.first;
    const auto ticks = static_cast<size_t>(length / std::max(job_.period, kMinPeriod)) + 1;
    return ticks * rows * asked_.size();
  }
  Result<std::vector<Nanos>> BeginsOfPieces(const Archive& archive, const std::string& key,
                                            size_t most_points) const {
    if (PointsAtMost() <= most_points) return std::vector<Nanos>{0};
    const auto is_node = [&](uint32_t node) { return by_host_.contains(HostOfNode(job_, node)); };
    return FindPieces(archive, key, grid_, most_points, is_node,
                      [&](const Series& series) { return IsAsked(series); });
  }

  // All points of all series. In the order of names, as from pieces: sums are the same.
  void AddWhole(const std::vector<SeriesData>& all) {
    std::vector<std::pair<std::string, const SeriesData*>> ordered;
    ordered.reserve(all.size());
    for (const SeriesData& one : all) {
      ordered.emplace_back(SeriesName(one.series.metric.name, one.series.tags), &one);
    }
    std::sort(ordered.begin(), ordered.end());
    for (const auto& [name, data] : ordered) {
      TickFiller filler = Begin(*data);
      for (const Point& point : data->points) filler.Add(point.time, point.value);
      AddRow(data->series, filler.Take());
    }
  }
  void AddPiece(const SeriesData& data) {
    std::string name = SeriesName(data.series.metric.name, data.series.tags);
    auto found = fillings_.find(name);
    if (found == fillings_.end()) {
      found = fillings_.emplace(std::move(name), Filling{data.series, Begin(data)}).first;
    }
    for (const Point& point : data.points) found->second.filler.Add(point.time, point.value);
  }
  void AddRow(const Series& series, const std::vector<double>& values) {
    for (size_t i = 0; i < asked_.size(); ++i) {
      if (!IsWatched(series, asked_[i].watched)) continue;
      const auto owner = OwnerOf(series, asked_[i].by, by_host_);
      if (!owner) continue;
      OneRow& row = rows_[i][*owner];
      row.host = *series.tags.Find("host");
      AddKnown(values, row.row);
    }
  }

  // What the series had before its first points.
  TickFiller Begin(const SeriesData& data) const {
    const bool counts = IsCounting(data.series.metric.type);
    TickFiller filler(grid_, counts);
    if (!counts || data.points.empty()) return filler;
    BeforeFirst before = BeforeFirst::kUnknown;
    for (const AskedRows& one : asked_) {
      if (IsWatched(data.series, one.watched)) before = std::max(before, one.before);
    }
    const Nanos first = data.points.front().time;
    if (before == BeforeFirst::kZeroATickAgo) {
      filler.Add(first - std::max(job_.period, kMinPeriod), 0);
    } else if (before == BeforeFirst::kZeroAtItsJoining) {
      const std::string* host = data.series.tags.Find("host");
      const auto node = host == nullptr ? by_host_.end() : by_host_.find(*host);
      if (node == by_host_.end()) return filler;
      const Nanos start = std::max(job_.start, job_.nodes[node->second].joined);
      if (start < first) filler.Add(start, 0);
    }
    return filler;
  }

  const JobDescription& job_;
  const TickGrid& grid_;
  std::span<const AskedRows> asked_;
  std::map<std::string, size_t> by_host_;
  std::set<std::string_view> metrics_;
  std::map<std::string, Filling> fillings_;       // by series, where pieces are read
  std::vector<std::map<uint32_t, OneRow>> rows_;  // of each asked, by rank or node
};

}  // namespace

size_t StepRows::OfNode(size_t node) const { return Find(&Who::node, node); }

size_t StepRows::OfRank(uint32_t rank) const { return Find(&Who::rank, rank); }

template <typename Id>
size_t StepRows::Find(Id Who::*id, Id wanted) const {
  const auto at = std::lower_bound(who.begin(), who.end(), wanted,
                                   [&](const Who& one, Id value) { return one.*id < value; });
  const auto row = static_cast<size_t>(at - who.begin());
  return at != who.end() && (*at).*id == wanted ? row : rows.size();
}

Result<std::vector<StepRows>> ReadStepRows(const Archive& archive, const std::string& key,
                                           const JobDescription& job, const TickGrid& grid,
                                           std::span<const AskedRows> asked,
                                           const std::set<size_t>& nodes, size_t most_points) {
  Reading reading(job, grid, asked, nodes);
  const Status status = reading.Read(archive, key, most_points);
  if (!status.ok()) return status;
  return reading.Take();
}

}  // namespace sonde::insight
