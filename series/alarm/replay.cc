#include "series/alarm/replay.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <memory>
#include <utility>

#include "series/alarm/defaults.h"
#include "series/alarm/derived_series.h"
#include "series/alarm/evaluator.h"

namespace sonde::alarms {
namespace {

uint32_t RankOf(const Tags& tags) {
  const std::string* text = tags.Find(kTaskTag);
  uint32_t rank = Owner::kNobody;
  if (text != nullptr) std::from_chars(text->data(), text->data() + text->size(), rank);
  return rank;
}

bool IsTick(Nanos time, Nanos period) { return time % period == 0; }

// A step's reduced series, which grow as nodes bring new ones, and their values at one tick.
class Row {
 public:
  size_t ColumnOf(const Series& series) {
    Series reduced = series;
    reduced.tags.Erase(kTaskTag);
    const auto [at, added] =
        columns_.try_emplace(SeriesName(reduced.metric.name, reduced.tags), series_.size());
    if (added) series_.push_back(std::move(reduced));
    return at->second;
  }
  void Begin() { values_.assign(series_.size(), Reduced()); }
  void Add(size_t column, double value, Owner owner) {
    if (values_.size() < series_.size()) values_.resize(series_.size());
    values_[column].Add(value, owner);
  }
  const std::vector<Series>& series() const { return series_; }
  const std::vector<Reduced>& values() const { return values_; }

 private:
  std::map<std::string, size_t> columns_;
  std::vector<Series> series_;
  std::vector<Reduced> values_;
};

// What this node derives: what names a node is meant for that one.
std::vector<Derived> NeedsOf(std::vector<Derived> needs, const std::string& node) {
  std::erase_if(needs, [&](const Derived& one) {
    const std::string* host = one.tags.Find(kHostTag);
    return host != nullptr && *host != node;
  });
  return needs;
}

// One node on its way through the ticks.
class Node {
 public:
  Node(const ReplayNode& node, const std::vector<Derived>& needs, Nanos period, Row& row)
      : node_(node), period_(period) {
    std::vector<Series> all;
    for (const SeriesData& one : node.series) {
      all.push_back(one.series);
      inputs_.emplace_back(row.ColumnOf(one.series), RankOf(one.series.tags));
    }
    values_.assign(all.size(), std::nan(""));
    derived_.SetWanted(NeedsOf(needs, node.host));
    const Schema::Ptr groups[] = {all.empty() ? nullptr : Schema::Make(std::move(all))};
    derived_.SetSchemas(groups);
    if (derived_.schema() == nullptr) return;
    for (const Series& one : derived_.schema()->series()) {
      outputs_.push_back({row.ColumnOf(one), RankOf(one.tags)});
    }
  }

  // The node's part of a tick's row; whether it is there.
  bool Take(Nanos tick, Row& row) {
    bool there = false;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      values_[i] = Next(i, tick);
      there = there || !std::isnan(values_[i]);
    }
    for (size_t i = 0; i < inputs_.size(); ++i) {
      Input& input = inputs_[i];
      const std::vector<Point>& points = node_.series[i].points;
      const bool counts = IsCounting(node_.series[i].series.metric.type);
      if (!std::isnan(values_[i])) input.last = values_[i];
      // What a counter has counted stays; one that is read every 10 s only is not there in between.
      const bool stays = counts && (!there || input.next == points.size());
      row.Add(input.column, stays ? input.last : values_[i], {node_.index, input.rank});
    }
    if (!there) return false;
    const std::span<const double> rows[] = {values_};
    derived_.Update(tick, rows);
    const std::span<const double> made = derived_.row();
    for (size_t i = 0; i < outputs_.size(); ++i) {
      row.Add(outputs_[i].column, made[i], {node_.index, outputs_[i].rank});
    }
    return true;
  }

  // A node that has only just come need not be in the row yet, as for the head.
  bool Expected(Nanos tick) const {
    return node_.joined <= tick - 2 * period_ && (node_.left == 0 || tick <= node_.left);
  }

 private:
  struct Output {
    size_t column = 0;
    uint32_t rank = Owner::kNobody;
  };
  struct Input : Output {
    Input(size_t of, uint32_t by) : Output{of, by} {}
    size_t next = 0;  // point
    double last = std::nan("");
  };

  // The value of the tick. What lies beside the ticks is passed, and of a counter kept.
  double Next(size_t i, Nanos tick) {
    Input& input = inputs_[i];
    const std::vector<Point>& points = node_.series[i].points;
    for (; input.next < points.size() && points[input.next].time < tick; ++input.next) {
      input.last = points[input.next].value;
    }
    const bool here = input.next < points.size() && points[input.next].time == tick;
    return here ? points[input.next++].value : std::nan("");
  }

  const ReplayNode& node_;
  const Nanos period_;
  DerivedSeries derived_;
  std::vector<Input> inputs_;
  std::vector<Output> outputs_;
  std::vector<double> values_;
};

std::vector<Nanos> TicksOf(std::span<const ReplayNode> nodes, Nanos period) {
  std::vector<Nanos> ticks;
  for (const ReplayNode& node : nodes) {
    for (const SeriesData& one : node.series) {
      const size_t before = ticks.size();
      for (const Point& point : one.points) {
        if (IsTick(point.time, period)) ticks.push_back(point.time);
      }
      // Mostly the ticks of the series before, which shall not be kept many times over.
      std::inplace_merge(ticks.begin(), ticks.begin() + static_cast<std::ptrdiff_t>(before),
                         ticks.end());
      ticks.erase(std::unique(ticks.begin(), ticks.end()), ticks.end());
    }
  }
  return ticks;
}

bool LooksForAbsence(const Rule& rule) {
  return std::any_of(rule.conditions.begin(), rule.conditions.end(),
                     [](const Condition& condition) { return condition.test == Test::kAbsent; });
}

// All ticks at which one of the nodes was there; more than `most` are too many.
std::vector<Nanos> TicksWithNodes(std::span<const ReplayNode> nodes, Nanos period, Nanos first,
                                  Nanos last, size_t most) {
  Nanos joined = std::numeric_limits<Nanos>::max();
  Nanos left = 0;
  for (const ReplayNode& node : nodes) {
    joined = std::min(joined, node.joined);
    left = std::max(left, node.left == 0 ? last : node.left);
  }
  std::vector<Nanos> ticks;
  if (nodes.empty()) return ticks;
  first = std::max(first, joined);
  for (Nanos tick = (first + period - 1) / period * period; tick <= std::min(last, left);
       tick += period) {
    ticks.push_back(tick);
    if (ticks.size() > most) break;
  }
  return ticks;
}

void Keep(const Event& event, Replay& replay) {
  if (event.raised) {
    ++replay.raised;
    if (replay.alarms.size() == kMaxReplayed) return;
    replay.alarms.push_back({event.tags, event.text, event.time, 0, event.value, event.owner});
    return;
  }
  const auto open =
      std::find_if(replay.alarms.rbegin(), replay.alarms.rend(),
                   [&](const Replayed& one) { return one.over == 0 && one.tags == event.tags; });
  if (open != replay.alarms.rend()) open->over = event.time;
}

}  // namespace

std::vector<std::string> MetricsOf(const Rule& rule) {
  std::vector<std::string> metrics;
  const auto add = [&](const std::string& metric) {
    if (!metric.empty() && std::find(metrics.begin(), metrics.end(), metric) == metrics.end()) {
      metrics.push_back(metric);
    }
  };
  for (const Condition& condition : rule.conditions) {
    add(condition.metric);
    add(condition.over);
  }
  add(std::string(kAliveMetric));
  return metrics;
}

Status CheckReplay(const Rule& rule) {
  for (const Condition& condition : rule.conditions) {
    if (condition.metric != kNodeMissing && condition.over != kNodeMissing) continue;
    return {
        Code::kInvalid,
        fmt::format("alarm {}: {} is the head's own and not recorded: a rule about it cannot be "
                    "tried",
                    rule.name, kNodeMissing)};
  }
  return {};
}

Result<Replay> ReplayRule(const Rule& rule, std::span<const ReplayNode> nodes, Nanos period,
                          Nanos first, Nanos last) {
  SONDE_RETURN_IF_ERROR(CheckReplay(rule));
  period = std::max<Nanos>(period, 1);
  size_t series = 1;
  for (const ReplayNode& node : nodes) series += node.series.size();
  const size_t most = kMaxReplayValues / series;
  const std::vector<Nanos> ticks = LooksForAbsence(rule)
                                       ? TicksWithNodes(nodes, period, first, last, most)
                                       : TicksOf(nodes, period);
  if (ticks.size() > most) {
    return Status(
        Code::kLimit,
        fmt::format("alarm {}: {} series at {} ticks are more than {} values: try it on a "
                    "shorter range",
                    rule.name, series, ticks.size(), kMaxReplayValues));
  }
  Evaluator evaluator(period);
  SONDE_RETURN_IF_ERROR(evaluator.Add(rule));
  const std::vector<Derived> needs = evaluator.Needs();
  Row row;
  std::vector<std::unique_ptr<Node>> all;
  for (const ReplayNode& node : nodes) {
    all.push_back(std::make_unique<Node>(node, needs, period, row));
  }
  Replay replay;
  std::vector<Event> events;
  for (const Nanos tick : ticks) {
    row.Begin();
    bool complete = true;
    for (const std::unique_ptr<Node>& node : all) {
      const bool there = node->Take(tick, row);
      complete = complete && (there || !node->Expected(tick));
    }
    events.clear();
    evaluator.Evaluate(row.series(), {tick, &row.values(), complete}, events);
    for (const Event& event : events) Keep(event, replay);
  }
  replay.rows = ticks.size();
  if (!ticks.empty()) {
    replay.first = ticks.front();
    replay.last = ticks.back();
  }
  return replay;
}

}  // namespace sonde::alarms
