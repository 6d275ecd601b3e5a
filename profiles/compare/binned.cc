#include "profiles/compare/binned.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "profiles/archive/step_numbers.h"

namespace sonde {
namespace {

double SecondsBetween(Nanos from, Nanos to) { return static_cast<double>(to - from) / kSecond; }

// One series that is being put into bins.
struct Filling {
  BinnedSeries out;
  std::vector<double> weights;
  bool any = false;
  Nanos time = 0;
  double value = 0;

  void Add(Nanos now, double number, Nanos zero, const Axis& axis) {
    if (!std::isfinite(number)) return;
    double shown = number;
    if (out.PerSecond()) {
      const bool first = !std::exchange(any, true);
      const Nanos before = std::exchange(time, now);
      const double last = std::exchange(value, number);
      if (first || now <= before) return;
      shown = (number - last) / SecondsBetween(before, now);
    }
    const double at = (SecondsBetween(zero, now) + axis.before) / axis.Width();
    const auto bin = static_cast<size_t>(std::clamp(at, 0.0, static_cast<double>(axis.bins) - 1));
    out.bins[bin] += shown;
    weights[bin] += 1;
  }
  BinnedSeries Take() {
    for (size_t i = 0; i < weights.size(); ++i) out.bins[i] /= weights[i];  // 0 by 0: missing
    return std::move(out);
  }
};

}  // namespace

Result<Nanos> ZeroOf(const Profile& profile, const std::string& phase) {
  if (phase.empty()) return profile.job.start;
  for (const Phase& one : profile.moments.phases) {
    if (one.name == phase) return one.begin;
  }
  std::set<std::string> names;
  for (const Phase& one : profile.moments.phases) names.insert(one.name);
  std::string known;
  for (const std::string& name : names) known += (known.empty() ? "" : ", ") + name;
  return Status(Code::kNotFound,
                fmt::format("{} was never in the phase '{}'; its phases: {}",
                            profile.job.id.ToString(), phase, known.empty() ? "none" : known));
}

Axis AxisOf(const std::vector<const Profile*>& profiles, const std::vector<Nanos>& zeros,
            size_t bins) {
  Axis axis;
  double longest = SecondsBetween(0, kMinPeriod);
  for (size_t i = 0; i < profiles.size(); ++i) {
    const JobDescription& job = profiles[i]->job;
    longest = std::max(longest, SecondsBetween(0, job.period));
    axis.before = std::max(axis.before, SecondsBetween(job.start, zeros[i]));
    axis.behind = std::max(axis.behind, SecondsBetween(zeros[i], std::max(job.end, zeros[i])));
  }
  if (!(axis.before + axis.behind > 0)) axis.behind = 1;
  // A bin shorter than the time between samples would often be empty.
  const double samples = (axis.before + axis.behind) / longest;
  axis.bins = std::clamp<size_t>(static_cast<size_t>(std::min(samples, 1e9)), 1, bins);
  return axis;
}

Result<BinnedRun> ReadBins(const Archive& archive, const ProfileEntry& entry, Nanos zero,
                           const Axis& axis, WantedMetrics& metrics) {
  std::map<std::string, Filling> all;
  std::map<uint64_t, std::vector<Filling*>> columns;  // by schema
  StepNumbers numbers(entry.job.presence);
  std::vector<double> row;
  const auto columns_of = [&](const Schema& schema) -> const std::vector<Filling*>& {
    const auto [at, is_new] = columns.try_emplace(schema.id());
    if (!is_new) return at->second;
    for (const StepNumbers::Number& number : StepNumbers::NumbersOf(schema)) {
      if (metrics.wanted && !metrics.wanted(number.series.metric)) {
        at->second.push_back(nullptr);
        continue;
      }
      Filling& filling =
          all[SeriesName(number.series.metric.name + number.suffix, number.series.tags)];
      if (filling.weights.empty()) {
        filling.out = {number.series, number.suffix, std::vector<double>(axis.bins)};
        filling.weights.resize(axis.bins);
      }
      at->second.push_back(&filling);
    }
    const auto is_none = [](const Filling* filling) { return filling == nullptr; };
    if (std::all_of(at->second.begin(), at->second.end(), is_none)) {
      metrics.without.insert(schema.id());
    }
    return at->second;
  };
  RowsWanted rows;
  rows.stream = [&](uint32_t, const std::string&, const BlockInfo& info) {
    return !metrics.without.contains(info.schema_id);
  };
  SONDE_RETURN_IF_ERROR(
      archive.ReadRows(entry.key, SeriesScope::kReduced, rows, [&](const StoredRow& stored) {
        const auto& fillings = columns_of(*stored.schema);
        if (metrics.without.contains(stored.schema->id())) return Status();
        numbers.Add(stored, row);
        for (size_t i = 0; i < fillings.size(); ++i) {
          if (fillings[i] != nullptr) fillings[i]->Add(stored.time(), row[i], zero, axis);
        }
        return Status();
      }));
  BinnedRun run;
  for (auto& [name, filling] : all) run.emplace(name, filling.Take());
  return run;
}

std::vector<double> SumOf(const BinnedRun& run, std::string_view metric) {
  std::vector<double> sum;
  for (const auto& [name, series] : run) {
    if (series.series.metric.name != metric || !series.suffix.empty()) continue;
    if (sum.empty()) sum.resize(series.bins.size(), std::nan(""));
    for (size_t i = 0; i < sum.size(); ++i) {
      if (std::isnan(series.bins[i])) continue;
      sum[i] = (std::isnan(sum[i]) ? 0 : sum[i]) + series.bins[i];
    }
  }
  return sum;
}

std::map<std::string, double, std::less<>> VariationOf(const BinnedRun& run) {
  std::map<std::string, double, std::less<>> out;
  std::set<std::string> metrics;
  for (const auto& [name, series] : run) metrics.insert(series.series.metric.name);
  for (const std::string& metric : metrics) {
    std::vector<double> bins = SumOf(run, metric);
    std::erase_if(bins, [](double value) { return std::isnan(value); });
    if (bins.size() < 2) continue;
    double sum = bins[0];
    double squares = 0;
    for (size_t i = 1; i < bins.size(); ++i) {
      sum += bins[i];
      squares += (bins[i] - bins[i - 1]) * (bins[i] - bins[i - 1]);
    }
    const auto n = static_cast<double>(bins.size());
    const double variance = squares / (2 * (n - 1));
    if (sum != 0) out[metric] = std::sqrt(variance / n) / std::abs(sum / n);
  }
  return out;
}

}  // namespace sonde
