#include "insight/steps/step_rows.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "profiles/model/shown_series.h"
#include "series/store/task_ranks.h"

namespace sonde::insight {
namespace {

constexpr size_t kMostPoints = 16'000'000;  // read at once

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
      : job_(job), grid_(grid), asked_(asked), by_host_(NodesByHost(job, nodes)) {
    for (const AskedRows& one : asked) metrics_.insert(one.watched.metric);
  }

  Status Read(const Archive& archive, const std::string& key) {
    const Nanos piece = PieceOf();
    const Nanos last = std::max(job_.end, job_.start) + grid_.width;
    for (Nanos begin = grid_.first; begin <= last; begin += piece) {
      // Nothing is left out before the first piece and behind the last one.
      const Nanos from = begin == grid_.first ? 0 : begin;
      const Nanos to = begin + piece > last ? std::numeric_limits<Nanos>::max() : begin + piece - 1;
      const auto data = archive.Read(
          key, SeriesScope::kNodes,
          SeriesWanted([&](const Metric& metric) { return metrics_.contains(metric.name); },
                       [&](const Series& series) { return IsWanted(series); }),
          from, to, Thinned::kMean);
      if (!data.ok()) return data.status();
      for (const SeriesData& one : *data) Add(one);
    }
    return {};
  }

  std::vector<StepRows> Take() const {
    std::vector<std::map<uint32_t, OneRow>> filled(asked_.size());
    for (const auto& [name, filling] : fillings_) {
      const std::vector<double> values = filling.filler.Take();
      for (size_t i = 0; i < asked_.size(); ++i) {
        if (!IsWatched(filling.series, asked_[i].watched)) continue;
        const auto owner = OwnerOf(filling.series, asked_[i].by, by_host_);
        if (!owner) continue;
        OneRow& row = filled[i][*owner];
        row.host = *filling.series.tags.Find("host");
        AddKnown(values, row.row);
      }
    }
    std::vector<StepRows> out(asked_.size());
    for (size_t i = 0; i < asked_.size(); ++i) {
      for (auto& [owner, row] : filled[i]) {
        out[i].who.push_back({owner, row.host, by_host_.at(row.host)});
        out[i].rows.push_back(std::move(row.row));
      }
    }
    return out;
  }

 private:
  bool IsWanted(const Series& series) const {
    const std::string* host = series.tags.Find("host");
    return host != nullptr && by_host_.contains(*host) &&
           std::any_of(asked_.begin(), asked_.end(),
                       [&](const AskedRows& one) { return IsWatched(series, one.watched); });
  }
  // So long that all points of a piece, of some series for each task, can be held at once.
  Nanos PieceOf() const {
    const size_t nodes = std::max<size_t>(1, job_.nodes.size());
    const size_t rows = 1 + std::max<size_t>(nodes, job_.expected_tasks) * by_host_.size() / nodes;
    const size_t ticks = kMostPoints / std::max<size_t>(1, asked_.size()) / rows;
    return static_cast<Nanos>(std::max<size_t>(1, ticks)) * std::max(job_.period, kMinPeriod);
  }
  void Add(const SeriesData& data) {
    const std::string name = SeriesName(data.series.metric.name, data.series.tags);
    auto found = fillings_.find(name);
    if (found == fillings_.end()) {
      const bool counts = IsCounting(data.series.metric.type);
      found = fillings_.emplace(name, Filling{data.series, TickFiller(grid_, counts)}).first;
      if (counts && !data.points.empty()) AddBefore(data, found->second.filler);
    }
    for (const Point& point : data.points) found->second.filler.Add(point.time, point.value);
  }

  void AddBefore(const SeriesData& data, TickFiller& filler) const {
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
      if (node == by_host_.end()) return;
      const Nanos start = std::max(job_.start, job_.nodes[node->second].joined);
      if (start < first) filler.Add(start, 0);
    }
  }

  const JobDescription& job_;
  const TickGrid& grid_;
  std::span<const AskedRows> asked_;
  std::map<std::string, size_t> by_host_;
  std::set<std::string_view> metrics_;
  std::map<std::string, Filling> fillings_;  // by series
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
                                           const std::set<size_t>& nodes) {
  Reading reading(job, grid, asked, nodes);
  const Status status = reading.Read(archive, key);
  if (!status.ok()) return status;
  return reading.Take();
}

}  // namespace sonde::insight
