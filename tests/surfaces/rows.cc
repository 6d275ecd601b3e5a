#include "tests/surfaces/rows.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sonde::surfaces {
namespace {

constexpr double kUlp = std::numeric_limits<double>::epsilon();

bool IsBefore(const Entry& a, const Entry& b) {
  return std::pair(a.daemon, a.task) < std::pair(b.daemon, b.task);
}

Nanos LastTickOf(const Daemon& daemon) {
  Nanos last = 0;
  for (const Sample& sample : daemon.samples) last = sample.tick ? sample.time : last;
  return last;
}

}  // namespace

Entries Rows::ValuesOf(uint32_t daemon, const Sample& sample, size_t series) const {
  Entries entries;
  const std::vector<Column>& columns = plan_.daemons[daemon].columns;
  for (size_t c = 0; c < columns.size(); ++c) {
    if (columns[c].series != series || std::isnan(sample.values[c])) continue;
    entries.push_back({sample.values[c], daemon, columns[c].task});
  }
  return entries;
}

void Rows::OnArrived(uint32_t daemon, const Sample& sample) {
  Known& known = known_[daemon];
  for (size_t s = 0; s < plan_.series.size(); ++s) {
    Entries values = ValuesOf(daemon, sample, s);
    if (!values.empty()) known.newest[s] = std::move(values);
  }
  if (!sample.tick) {
    known.ended = true;
    return;
  }
  known.ticks.insert(sample.time);
  if (rows_.contains(sample.time)) return AddLate(daemon, sample);
  waiting_[sample.time].emplace_back(daemon, &sample);
}

void Rows::OnLost(uint32_t daemon) { known_[daemon].lost_at = clock_->Now(); }

// Whether the head still expects values of the series from the daemon. Ticks wait a little for one
// whose link is gone.
bool Rows::Contributes(uint32_t daemon, Nanos tick, size_t series) const {
  const Known& known = known_[daemon];
  const Nanos hand_over = std::max(2 * plan_.period, 200 * kMillisecond);
  if (!known.joined || (known.ended && LastTickOf(plan_.daemons[daemon]) < tick)) return false;
  if (known.lost_at != 0 && known.lost_at + hand_over <= tick) return false;
  const std::vector<Column>& columns = plan_.daemons[daemon].columns;
  return std::any_of(columns.begin(), columns.end(),
                     [&](const Column& column) { return column.series == series; });
}

void Rows::OnRow(Nanos tick) {
  Row row;
  for (const auto& [daemon, sample] : waiting_[tick]) AddSample(daemon, *sample, row);
  waiting_.erase(tick);
  AddAbsent(tick, row);
  rows_[tick] = std::move(row);
}

void Rows::AddSample(uint32_t daemon, const Sample& sample, Row& row) {
  row.nodes.insert(daemon);
  for (size_t s = 0; s < plan_.series.size(); ++s) {
    for (const Entry& entry : ValuesOf(daemon, sample, s)) row.values[s].push_back(entry);
  }
  AddSpreads(daemon, sample, row);
}

// Of a gauge its values; of a counter its rates since the daemon's sample before.
void Rows::AddSpreads(uint32_t daemon, const Sample& sample, Row& row) {
  const Daemon& of = plan_.daemons[daemon];
  for (size_t c = 0; c < of.columns.size(); ++c) {
    const size_t series = of.columns[c].series;
    const double value = sample.values[c];
    if (!plan_.series[series].series.metric.spread || std::isnan(value)) continue;
    if (!Counts(series)) {
      row.spreads[series].push_back(value);
      continue;
    }
    const Sample* before = nullptr;
    for (const Sample& one : of.samples) {
      if (one.time < sample.time && !std::isnan(one.values[c])) before = &one;
    }
    if (before == nullptr) continue;
    const double seconds = static_cast<double>(sample.time - before->time) / kSecond;
    row.spreads[series].push_back((value - before->values[c]) / seconds);
  }
}

// What is known of the daemon as it was before the tick; nothing before its first one.
std::map<size_t, Entries> Rows::KnownBefore(uint32_t daemon, Nanos tick) const {
  const Known& known = known_[daemon];
  std::map<size_t, Entries> values;
  if (known.ended && LastTickOf(plan_.daemons[daemon]) < tick) return known.newest;
  for (const Sample& sample : plan_.daemons[daemon].samples) {
    if (!sample.tick || sample.time >= tick || !known.ticks.contains(sample.time)) continue;
    for (size_t s = 0; s < plan_.series.size(); ++s) {
      Entries entries = ValuesOf(daemon, sample, s);
      if (!entries.empty()) values[s] = std::move(entries);
    }
  }
  return values;
}

void Rows::AddAbsent(Nanos tick, Row& row) {
  std::map<uint32_t, std::map<size_t, Entries>> absent;
  for (uint32_t d = 0; d < known_.size(); ++d) {
    if (row.nodes.contains(d)) continue;
    std::map<size_t, Entries> values = KnownBefore(d, tick);
    if (values.empty()) continue;
    absent[d] = std::move(values);
    row.stood_in.insert(d);
  }
  for (size_t s = 0; s < plan_.series.size(); ++s) {
    if (!Counts(s)) continue;
    // A series that some node could have and none has is not sampled at this tick.
    bool expected = false;
    for (uint32_t d = 0; d < known_.size(); ++d) expected |= Contributes(d, tick, s);
    if (expected && !row.values.contains(s)) continue;
    for (const auto& [d, values] : absent) {
      const auto known = values.find(s);
      if (known == values.end()) continue;
      Entries& entries = row.values[s];
      entries.insert(entries.end(), known->second.begin(), known->second.end());
    }
  }
}

// Counters for which other values stand are counted already.
void Rows::AddLate(uint32_t daemon, const Sample& sample) {
  Row& row = rows_[sample.time];
  for (size_t s = 0; s < plan_.series.size(); ++s) {
    Entries& entries = row.values[s];
    const bool stands =
        Counts(s) && std::any_of(entries.begin(), entries.end(),
                                 [&](const Entry& e) { return e.daemon == daemon; });
    if (!stands) {
      for (const Entry& entry : ValuesOf(daemon, sample, s)) entries.push_back(entry);
    }
    if (entries.empty()) row.values.erase(s);
  }
  if (!row.stood_in.contains(daemon)) row.nodes.insert(daemon);
  AddSpreads(daemon, sample, row);
}

void Rows::OnFinish(Nanos time) {
  Row row;
  for (const Known& known : known_) {
    for (const auto& [series, entries] : known.newest) {
      Entries& all = row.values[series];
      all.insert(all.end(), entries.begin(), entries.end());
    }
  }
  rows_[time] = std::move(row);
}

bool Rows::steady() const {
  for (const auto& [tick, row] : rows_) {
    for (uint32_t d = 0; d < known_.size(); ++d) {
      if (!known_[d].joined || !row.nodes.contains(d)) return false;
    }
  }
  return true;
}

bool Rows::any_gone() const {
  return std::any_of(known_.begin(), known_.end(),
                     [](const Known& known) { return known.ended || known.lost_at != 0; });
}

std::pair<std::vector<double>, double> ValuesOf(const Entries& entries) {
  std::vector<double> values;
  double size = 0;
  for (const Entry& entry : entries) {
    values.push_back(entry.value);
    size += std::fabs(entry.value);
  }
  return {std::move(values), size};
}

Number NumberOf(const Entries& entries, const Metric& metric) {
  if (entries.empty()) return {std::nan(""), 0};
  const auto [values, size] = ValuesOf(entries);
  const auto count = static_cast<double>(values.size());
  // Sums of multiples of 1/8 are exact; those near 2^63 are rounded with each value.
  const bool exact = size < 9007199254740992.0 / 8;
  const double error = exact ? 0 : count * kUlp * size;
  const Reduction how = metric.type == MetricType::kCounter ? Reduction::kSum : metric.reduction;
  switch (how) {
    case Reduction::kMin:
      return {*std::min_element(values.begin(), values.end()), 0};
    case Reduction::kMax:
      return {*std::max_element(values.begin(), values.end()), 0};
    case Reduction::kMean:
      return {ExactSum(values) / count, error / count};
    default:
      return {ExactSum(values), error};
  }
}

Extreme LeastOf(const Entries& entries) {
  Entry least = entries.front();
  for (const Entry& e : entries) {
    if (e.value < least.value || (e.value == least.value && IsBefore(e, least))) least = e;
  }
  return {least.value, least.daemon, least.task};
}

Extreme MostOf(const Entries& entries) {
  Entry most = entries.front();
  for (const Entry& e : entries) {
    if (e.value > most.value || (e.value == most.value && IsBefore(e, most))) most = e;
  }
  return {most.value, most.daemon, most.task};
}

}  // namespace sonde::surfaces
