#include "series/alarm/derived_series.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace sonde::alarms {
namespace {

constexpr Nanos kForgetHeld = 30 * kSecond;  // without a value; as the head's rules

// A series of this node has no tag of it.
bool HasTagsButHost(const Tags& tags, const Tags& wanted) {
  return std::all_of(wanted.pairs().begin(), wanted.pairs().end(), [&](const Tags::Pair& want) {
    if (want.first == kHostTag) return true;
    const std::string* have = tags.Find(want.first);
    return have != nullptr && *have == want.second;
  });
}

Metric MakeMetric(const Derived& wanted, const Metric& of, std::string_view over_unit) {
  Metric metric;
  metric.name = DerivedName(wanted);
  metric.type = MetricType::kGauge;
  metric.level = of.level;
  metric.reduction = of.reduction;
  metric.unit = of.unit;
  std::string help = of.name;
  if (!wanted.over.empty()) {
    metric.unit = of.unit == over_unit ? "ratio" : fmt::format("{}/{}", of.unit, over_unit);
    metric.reduction = Reduction::kMean;
    help += " / " + wanted.over;
  } else if (wanted.rate) {
    metric.unit += "/s";
  }
  if (wanted.held != Test::kAbsent) {
    metric.unit = "seconds";
    metric.reduction = Reduction::kMax;
  }
  metric.help = fmt::format("{}{}, for alarms.", wanted.rate ? "Change per second of " : "", help);
  if (wanted.per_node) metric.help = "Of a node's tasks together: " + metric.help;
  return metric;
}

}  // namespace

struct DerivedSeries::Made {
  std::vector<Series> series;
  std::unordered_map<std::string, size_t> outputs;  // by name
};

void DerivedSeries::SetSchemas(std::span<const Schema::Ptr> groups) {
  if (!std::exchange(stale_, false) &&
      std::equal(groups.begin(), groups.end(), groups_.begin(), groups_.end()))
    return;
  groups_.assign(groups.begin(), groups.end());
  Build();
}

void DerivedSeries::Build() {
  const std::vector<Input> old = std::exchange(inputs_, {});
  const std::vector<Output> old_outputs = std::exchange(outputs_, {});
  alive_.clear();
  alive_of_.clear();
  Made made;
  if (!wanted_.empty()) {
    for (uint32_t g = 0; g < groups_.size(); ++g) {
      for (uint32_t c = 0; groups_[g] != nullptr && c < groups_[g]->size(); ++c) {
        const Series& series = (*groups_[g])[c];
        const std::string* task = series.tags.Find(kTaskTag);
        if (task == nullptr || series.metric.name != kAliveMetric) continue;
        alive_of_[*task] = static_cast<int>(alive_.size());
        alive_.push_back({g, c});
      }
    }
  }
  for (const Derived& one : wanted_) BuildOne(one, made);
  // Rates go on over a new schema: a task that starts does not hide the others for a tick.
  std::unordered_map<std::string_view, const Input*> before;
  for (const Input& input : old) before.emplace(input.key, &input);
  for (Input& input : inputs_) {
    const auto at = before.find(input.key);
    if (at == before.end()) continue;
    input.before = at->second->before;
    input.before_time = at->second->before_time;
  }
  for (const Output& output : old_outputs) {
    const auto at = made.outputs.find(output.key);
    if (at == made.outputs.end()) continue;
    Output& now = outputs_[at->second];
    now.since = output.since;
    now.seen = output.seen;
    now.missed = output.missed;
  }
  row_.assign(made.series.size(), std::nan(""));
  schema_ = made.series.empty() ? nullptr : Schema::Make(std::move(made.series));
}

void DerivedSeries::BuildOne(const Derived& wanted, Made& made) {
  for (uint32_t g = 0; g < groups_.size(); ++g) {
    for (uint32_t c = 0; groups_[g] != nullptr && c < groups_[g]->size(); ++c) {
      if (!BuildFrom(wanted, {g, c}, made)) return;
    }
  }
}

// False if there are too many.
bool DerivedSeries::BuildFrom(const Derived& wanted, Place place, Made& made) {
  const Series& series = (*groups_[place.group])[place.column];
  if (series.metric.name != wanted.metric || !HasTagsButHost(series.tags, wanted.tags)) return true;
  const int over = wanted.over.empty() ? -1 : FindOver(wanted, series.tags);
  if (!wanted.over.empty() && over < 0) return true;
  Series derived;
  derived.tags = series.tags;
  if (wanted.per_node) derived.tags.Erase(kTaskTag);
  if (const std::string* host = wanted.tags.Find(kHostTag)) {
    derived.tags.Set(std::string(kHostTag), *host);
  }
  const std::string name = SeriesName(DerivedName(wanted), derived.tags);
  const auto [at, added] = made.outputs.try_emplace(name, outputs_.size());
  if (added) {
    if (outputs_.size() == kMaxSeries) return false;
    std::string_view over_unit;
    if (over >= 0) {
      const Place& its = inputs_[static_cast<size_t>(over)].at;
      over_unit = (*groups_[its.group])[its.column].metric.unit;
    }
    derived.metric = MakeMetric(wanted, series.metric, over_unit);
    made.series.push_back(std::move(derived));
    outputs_.push_back({.of = {},
                        .over = {},
                        .reduction = series.metric.reduction,
                        .held = wanted.held,
                        .bound = wanted.bound,
                        .key = name});
  } else if (!wanted.per_node) {
    return true;  // two rules wanted it
  }
  Output& output = outputs_[at->second];
  output.of.push_back(AddInput(wanted, series, place));
  if (over >= 0) output.over.push_back(static_cast<uint32_t>(over));
  return true;
}

uint32_t DerivedSeries::AddInput(const Derived& wanted, const Series& series, Place place) {
  Input input;
  input.at = place;
  input.counter = series.metric.type != MetricType::kGauge;
  input.rate = wanted.rate && (input.counter || wanted.over.empty());
  input.key = SeriesName(series.metric.name, series.tags);
  const std::string* task = series.tags.Find(kTaskTag);
  const auto alive = task == nullptr ? alive_of_.end() : alive_of_.find(*task);
  if (alive != alive_of_.end()) input.alive = alive->second;
  inputs_.push_back(std::move(input));
  return static_cast<uint32_t>(inputs_.size() - 1);
}

// The divisor whose tags the series has; -1 if there is none.
int DerivedSeries::FindOver(const Derived& wanted, const Tags& tags) {
  for (uint32_t g = 0; g < groups_.size(); ++g) {
    for (uint32_t c = 0; groups_[g] != nullptr && c < groups_[g]->size(); ++c) {
      const Series& series = (*groups_[g])[c];
      if (series.metric.name != wanted.over || !HasTagsButHost(tags, series.tags)) continue;
      return static_cast<int>(AddInput(wanted, series, {g, c}));
    }
  }
  return -1;
}

double DerivedSeries::Together(const std::vector<uint32_t>& inputs, Reduction reduction) const {
  if (inputs.size() == 1) return inputs_[inputs.front()].value;
  Reduced all;
  for (const uint32_t i : inputs) all.Add(inputs_[i].value, {});
  return all.Value(reduction);
}

double DerivedSeries::Held(Output& output, double value, Nanos time) {
  constexpr int kMissed = 5;
  if (std::isnan(value)) {
    output.missed = std::min(output.missed + 1, kMissed);
    return value;
  }
  const bool forgotten = output.missed == kMissed && time - output.seen > kForgetHeld;
  output.missed = 0;
  output.seen = time;
  if (!Compares(output.held, value, output.bound)) {
    output.since = 0;
    return 0;
  }
  if (output.since == 0 || forgotten) output.since = time;
  return static_cast<double>(time - output.since) / kSecond;
}

void DerivedSeries::Update(Nanos time, Rows rows) {
  const auto read = [&](Place at) {
    return at.group < rows.size() && at.column < rows[at.group].size() ? rows[at.group][at.column]
                                                                       : std::nan("");
  };
  for (Input& input : inputs_) {
    double value = read(input.at);
    if (input.alive >= 0 && std::isnan(read(alive_[static_cast<size_t>(input.alive)]))) {
      value = std::nan("");
    }
    input.value = value;
    if (!input.rate) continue;
    input.value = std::nan("");
    if (std::isnan(value)) continue;  // the next one is compared with the one before
    const double change = value - std::exchange(input.before, value);
    const Nanos span = time - std::exchange(input.before_time, time);
    if (span > 0 && (change >= 0 || !input.counter)) {
      input.value = change / (static_cast<double>(span) * 1e-9);
    }
  }
  for (size_t i = 0; i < outputs_.size(); ++i) {
    Output& output = outputs_[i];
    row_[i] = Together(output.of, output.reduction);
    if (!output.over.empty()) row_[i] /= Together(output.over, output.reduction);
    if (!std::isfinite(row_[i])) row_[i] = std::nan("");
    if (output.held != Test::kAbsent) row_[i] = Held(output, row_[i], time);
  }
}

}  // namespace sonde::alarms
