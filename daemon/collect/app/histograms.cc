#include "daemon/collect/app/histograms.h"

#include <string_view>
#include <utility>

#include "daemon/collect/read/parse.h"
#include "libclient/layout.h"

namespace sonde::collect {
namespace {

struct Derived {
  std::string_view ending;
  std::string_view unit;  // "": the histogram's
  MetricType type;
  Reduction reduction;
  std::string_view help;
};
constexpr Derived kDerived[AppHistograms::kSeries] = {
    {"_count", "1", MetricType::kCounter, Reduction::kSum, "how many were observed"},
    {"_sum", "", MetricType::kCounter, Reduction::kSum, "sum of what was observed"},
    {"_p50", "", MetricType::kGauge, Reduction::kMean, "median since the last tick"},
    {"_p99", "", MetricType::kGauge, Reduction::kMax, "99th percentile since the last tick"},
    {"_max", "", MetricType::kGauge, Reduction::kMax, "largest since the last tick"},
};
static_assert(client::kMaxHistogramName + 6 == kMaxNameLength, "the longest ending has 6 bytes");

// The histogram's help, shortened at a character's border where needed, and what this series is.
std::string Help(std::string_view help, std::string_view what) {
  if (help.empty()) return std::string(what);
  const size_t room = kMaxTextLength - what.size() - 2;
  if (help.size() > room) {
    size_t end = 0;
    for (size_t next = 0; next <= room; next += names::Utf8Length(help, next)) end = next;
    help = help.substr(0, end);
  }
  return std::string(help) + ": " + std::string(what);
}

Sketch ToSketch(const AppObservations& observations) {
  Sketch sketch;
  uint32_t bucket = observations.low;
  for (const uint64_t count : *observations.counts) sketch.Add(bucket++, count);
  sketch.AddSum(observations.sum, observations.min, observations.max);
  return sketch;
}

}  // namespace

std::array<Series, AppHistograms::kSeries> AppHistograms::SeriesOf(const Series& histogram) {
  std::array<Series, kSeries> all;
  for (size_t i = 0; i < kSeries; ++i) {
    const Derived& derived = kDerived[i];
    Series& series = all[i];
    series.tags = histogram.tags;
    series.metric = histogram.metric;
    series.metric.name += derived.ending;
    if (!derived.unit.empty()) series.metric.unit = derived.unit;
    series.metric.type = derived.type;
    series.metric.reduction = derived.reduction;
    series.metric.help = Help(histogram.metric.help, derived.help);
  }
  return all;
}

std::optional<uint32_t> AppHistograms::Find(const std::string& name) const {
  const auto found = rank_numbers_.find(name);
  if (found == rank_numbers_.end()) return {};
  return found->second;
}

uint32_t AppHistograms::Add(std::string name, const Series& histogram,
                            std::array<uint32_t, kSeries> columns) {
  const auto number = static_cast<uint32_t>(ranks_.size());
  const uint32_t node = NodeOf(histogram);
  ranks_.push_back({.columns = columns, .node = node, .came = {}});
  rank_numbers_.emplace(std::move(name), number);
  return number;
}

uint32_t AppHistograms::NodeOf(const Series& histogram) {
  Series series = histogram;
  series.tags.Erase(client::kTaskTag);
  std::string name = SeriesName(series.metric.name, series.tags);
  if (const auto found = node_numbers_.find(name); found != node_numbers_.end()) {
    return found->second;
  }
  const auto number = static_cast<uint32_t>(nodes_.size());
  nodes_.push_back({.series = std::move(series), .came = {}});
  node_numbers_.emplace(std::move(name), number);
  return number;
}

void AppHistograms::Observe(uint32_t number, const AppObservations& observations) {
  Sketch& came = ranks_[number].came;
  if (came.empty()) {
    came = ToSketch(observations);
    came_.push_back(number);
  } else {
    came.Merge(ToSketch(observations));
  }
}

void AppHistograms::Fill(std::span<double> values) {
  for (const uint32_t number : filled_) {
    for (const size_t i : {kMedian, kP99, kMax}) values[ColumnOf(number, i)] = kMissing;
  }
  filled_.clear();
  for (const uint32_t number : came_) {
    Rank& rank = ranks_[number];
    values[rank.columns[kMedian]] = rank.came.Quantile(0.5);
    values[rank.columns[kP99]] = rank.came.Quantile(0.99);
    values[rank.columns[kMax]] = rank.came.max();
    nodes_[rank.node].came.Merge(rank.came);
    rank.came = {};
  }
  filled_.swap(came_);
}

void AppHistograms::Take(Moments& out) {
  for (Node& node : nodes_) {
    if (!node.came.empty()) out.sketches.push_back({node.series, std::exchange(node.came, {})});
  }
}

}  // namespace sonde::collect
