// A step made up by chance, for tests of answers that rows and the nodes' series give together:
// nodes that come late, end, are lost, come back and are started anew, miss ticks and are late, and
// tasks that come and go. Its rows are those that a head keeps; who is in them the head's own code
// tells.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/job.h"
#include "daemon/head/record/presence.h"
#include "series/query/query.h"
#include "series/store/reduced.h"

namespace sonde {

class RowsStep {
 public:
  static constexpr Nanos kStart = 500'340 * kSecond;  // a minute before a full hour
  static constexpr Nanos kPeriod = kSecond;

  RowsStep(uint64_t seed, MetricType type) : random_(seed), counts_(type == MetricType::kCounter) {
    metric_.name = "value";
    metric_.type = type;
    ticks_ = 20 + Below(100);
    slow_ = Below(4) == 0 ? 10 : 1;
    keys_ = 1 + Below(2);
    MakeNodes();
    MakeRows();
    Describe();
  }

  const JobDescription& job() const { return job_; }
  const std::vector<SeriesData>& series() const { return series_; }
  const std::vector<SeriesData>& reduced() const { return reduced_; }
  Nanos end() const { return job_.end; }
  // Some task ends before its node does.
  bool tasks_end() const { return tasks_end_; }
  size_t Below(size_t end) { return random_() % end; }

 private:
  struct Sample {
    Nanos time = 0;
    bool tick = true;            // else beside the ticks
    bool in_row = true;          // it came in time
    bool has_value = true;       // not at every tick
    std::vector<double> values;  // by key; NaN: the task is not there
  };
  struct Node {
    std::string host;
    std::vector<Sample> samples;
    bool lost = false;
  };

  static Nanos Tick(size_t tick) { return kStart + static_cast<Nanos>(tick) * kPeriod; }

  void MakeNodes() {
    const size_t hosts = 2 + Below(6);
    const bool calm = Below(4) == 0;  // nobody is absent
    for (size_t i = 0; i < hosts; ++i) {
      const std::string host = "n" + std::to_string(i + 1);
      const size_t first = 1 + Below(Below(3) == 0 ? ticks_ / 2 : 3);
      const size_t last = std::min(ticks_ - 1, first + 3 + Below(ticks_));
      // What was sampled at no tick is in no row.
      const bool lost = Below(5) == 0 && (slow_ == 1 || last >= first + slow_);
      const bool anew = lost && last + 6 < ticks_ && Below(2) == 0;
      // Of one node alone: a task that comes when another goes is not noticed.
      AddNode(host, {first, last, lost, calm, i == 0 && !anew});
      if (anew) AddNode(host, {last + 2 + Below(3), ticks_ - 1, false, calm, false});
    }
  }

  struct Life {
    size_t first;
    size_t last;
    bool lost;
    bool calm;          // it is never absent
    bool tasks_change;  // a task comes later, or goes earlier
  };

  void AddNode(const std::string& host, const Life& life) {
    const auto [first, last, lost, calm, tasks_change] = life;
    Node& node = nodes_.emplace_back();
    node.host = host;
    node.lost = lost;
    std::vector<double> counted(keys_, -1);
    const bool late = tasks_change && Below(3) == 0;
    const bool early = tasks_change && Below(3) == 0;
    tasks_end_ = tasks_end_ || early;
    const size_t task_from = late ? first + Below(last - first) : first;
    const size_t task_to = early ? task_from + Below(last + 1 - task_from) : last + 1;
    const auto add = [&, first = first, last = last](Nanos time, bool tick, size_t at) {
      Sample& sample = node.samples.emplace_back();
      sample.time = time;
      sample.tick = tick;
      sample.has_value = !tick || time / kPeriod % static_cast<Nanos>(slow_) == 0;
      for (size_t key = 0; key < keys_; ++key) {
        const bool is_task = key == 1;
        const bool there = !is_task || (at >= task_from && at <= task_to);
        // Whatever is counted anew begins with 0.
        if (there) counted[key] += static_cast<double>(counted[key] < 0 ? 1 : Below(11));
        const double value = counts_ ? counted[key] : static_cast<double>(Below(1000));
        sample.values.push_back(there ? value : std::nan(""));
      }
    };
    if (counts_ || Below(4) != 0)
      add(Tick(first) - 1 - static_cast<Nanos>(Below(kPeriod - 2)), false, first);
    size_t away = 0;  // so long no frame arrives
    for (size_t tick = first; tick <= last; ++tick) {
      if (!calm && tick > first && tick < last && away == 0 && Below(20) == 0) away = 1 + Below(6);
      if (!calm && tick > first && tick < last && Below(40) == 0 && slow_ == 1)
        continue;  // not taken
      add(Tick(tick), true, tick);
      if (away > 0) node.samples.back().in_row = --away == 0 && tick == last;
      const bool is_slow = slow_ > 1 && tick % slow_ == 0;
      if (is_slow && tick < first + slow_) node.samples.back().in_row = true;
    }
    node.samples.back().in_row = true;
    if (!lost) add(Tick(last) + 1 + static_cast<Nanos>(Below(kPeriod - 2)), false, last);
  }

  // --- What the head has ---

  // What stands for a counter of a node that is not in the row; or, of a task that has ended, in
  // the sample of a node that is.
  static double Held(const Node& node, size_t key, Nanos tick, bool present) {
    const bool ended = !node.lost && node.samples.back().time < tick;
    Nanos known = 0;  // up to there: what is late comes, too
    for (const Sample& sample : node.samples) {
      const bool counted = (sample.in_row && sample.tick) || ended || present;
      if (sample.time < tick && counted) known = sample.time;
    }
    double held = std::nan("");
    for (const Sample& sample : node.samples) {
      const double value = sample.values[key];
      if (sample.time <= known && sample.has_value && !std::isnan(value)) held = value;
    }
    return held;
  }

  void MakeRows() {
    columns_.resize(keys_ * 4);
    head::Presence presence(kPeriod);
    for (size_t i = 1; i < ticks_; ++i) {
      tree::NodeSet present;
      std::vector<Reduced> values(keys_);
      for (uint32_t n = 0; n < nodes_.size(); ++n) AddToRow(n, Tick(i), present, values);
      if (present.empty()) continue;
      presence.OnRow(Tick(i), present);
      for (size_t key = 0; counts_ && key < keys_; ++key) AddHeld(Tick(i), present, key, values);
      Put(Tick(i), values);
    }
    job_.presence = presence.Runs();
  }

  void AddToRow(uint32_t index, Nanos tick, tree::NodeSet& present, std::vector<Reduced>& values) {
    for (const Sample& sample : nodes_[index].samples) {
      if (!sample.tick || sample.time != tick || !sample.in_row) continue;
      present.Add(tree::NodeSet(index));
      for (size_t key = 0; key < keys_; ++key) {
        if (sample.has_value && !std::isnan(sample.values[key])) {
          values[key].Add(sample.values[key], {index, Owner::kNobody});
        }
      }
    }
  }

  void AddHeld(Nanos tick, const tree::NodeSet& present, size_t key, std::vector<Reduced>& values) {
    if (tick / kPeriod % static_cast<Nanos>(slow_) != 0) return;
    for (uint32_t n = 0; n < nodes_.size(); ++n) {
      const double held = Held(nodes_[n], key, tick, present.Has(n));
      const bool has_own = present.Has(n) && !std::isnan(At(nodes_[n], tick, key));
      if (!has_own && !std::isnan(held)) values[key].Add(held, {n, Owner::kNobody});
    }
  }

  static double At(const Node& node, Nanos tick, size_t key) {
    for (const Sample& sample : node.samples) {
      if (sample.time == tick && sample.has_value) return sample.values[key];
    }
    return std::nan("");
  }

  void Put(Nanos tick, const std::vector<Reduced>& values) {
    for (size_t key = 0; key < keys_; ++key) {
      const Reduced& value = values[key];
      if (value.count == 0) continue;
      const double stats[] = {value.count, value.sum, value.min, value.max};
      for (size_t i = 0; i < 4; ++i) columns_[key * 4 + i].push_back({tick, stats[i]});
    }
  }

  // --- What is read ---

  Tags TagsOf(size_t key) const { return {{"mode", key == 0 ? "user" : "system"}}; }

  void Describe() {
    job_.id = {"7", "0"};
    job_.period = kPeriod;
    job_.start = kStart;
    for (const Node& node : nodes_) {
      NodeInfo& info = job_.nodes.emplace_back();
      info.host = node.host;
      info.joined = node.samples.front().time - static_cast<Nanos>(Below(kMillisecond));
      info.left =
          node.samples.back().time + (node.lost ? 1 + static_cast<Nanos>(Below(kPeriod)) : 0);
      info.lost = node.lost;
      job_.end = std::max(job_.end, info.left + kMillisecond);
    }
    // The row at the end, of what all had counted.
    std::vector<Reduced> last(keys_);
    for (uint32_t n = 0; n < nodes_.size(); ++n) {
      for (size_t key = 0; key < keys_; ++key) {
        const double held = Held(nodes_[n], key, job_.end, false);
        if (!std::isnan(held)) last[key].Add(held, {n, Owner::kNobody});
      }
    }
    Put(job_.end, last);
    constexpr const char* kStats[] = {"count", "sum", "min", "max"};
    for (size_t key = 0; key < keys_; ++key) {
      for (size_t i = 0; i < 4; ++i) {
        SeriesData& one = reduced_.emplace_back();
        one.series = {metric_, TagsOf(key)};
        one.series.tags.Set(std::string(kStatTag), kStats[i]);
        one.points = columns_[key * 4 + i];
      }
      std::map<std::string, std::vector<Point>> hosts;  // of all daemons that a host had
      for (const Node& node : nodes_) {
        for (const Sample& sample : node.samples) {
          const double value = sample.values[key];
          if (!sample.has_value || std::isnan(value)) continue;
          hosts[node.host].push_back({sample.time, value});
        }
      }
      for (auto& [host, points] : hosts) {
        SeriesData& one = series_.emplace_back();
        one.series = {metric_, TagsOf(key)};
        one.series.tags.Set("host", host);
        one.points = std::move(points);
      }
    }
  }

  std::mt19937_64 random_;
  const bool counts_;
  Metric metric_;
  size_t ticks_ = 0;
  size_t slow_ = 1;  // of so many ticks one has values
  size_t keys_ = 1;
  bool tasks_end_ = false;
  std::vector<Node> nodes_;
  std::vector<std::vector<Point>> columns_;
  JobDescription job_;
  std::vector<SeriesData> series_;
  std::vector<SeriesData> reduced_;
};

}  // namespace sonde
