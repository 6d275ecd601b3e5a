#include "profiles/compare/run_bands.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "profiles/json/writer.h"

namespace sonde {
namespace {

constexpr size_t kBandBins = 120;

double SecondsOf(const JobDescription& job) {
  const auto seconds = static_cast<double>(job.end - job.start) / kSecond;
  return std::max(seconds, static_cast<double>(kMinPeriod) / kSecond);
}

// A bin shorter than the time between samples would often be empty. Of shares nine of ten runs tell
// that: the others have gaps.
size_t BinsOf(const FoundRuns& found, BandAxis axis) {
  std::vector<double> samples;
  double longest = 0;
  double period = static_cast<double>(kMinPeriod) / kSecond;
  for (const ProfileEntry& entry : found.entries) {
    const double each = std::max(static_cast<double>(entry.job.period) / kSecond,
                                 static_cast<double>(kMinPeriod) / kSecond);
    samples.push_back(SecondsOf(entry.job) / each);
    longest = std::max(longest, SecondsOf(entry.job));
    period = std::max(period, each);
  }
  std::sort(samples.begin(), samples.end());
  const double most = axis == BandAxis::kShare ? QuantileOf(samples, 0.1) : longest / period;
  return static_cast<size_t>(std::clamp(most, 1.0, static_cast<double>(kBandBins)));
}

// The values of one series: those of a bin lie together.
struct Gathered {
  Series series;
  std::string suffix;
  bool per_second = false;
  std::vector<std::vector<double>> bins;

  void Add(const std::vector<double>& values) {
    for (size_t i = 0; i < values.size(); ++i) {
      if (std::isfinite(values[i])) bins[i].push_back(values[i]);
    }
  }
};

// `least` runs have a value where the band has one.
RunBand BandIn(Gathered& gathered, size_t least) {
  RunBand band{std::move(gathered.series),
               std::move(gathered.suffix),
               gathered.per_second,
               {},
               {},
               {},
               {},
               {},
               {}};
  for (std::vector<double>& ascending : gathered.bins) {
    std::sort(ascending.begin(), ascending.end());
    band.count.push_back(ascending.size());
    if (ascending.size() < least) ascending.clear();
    band.min.push_back(QuantileOf(ascending, 0));
    band.p10.push_back(QuantileOf(ascending, 0.1));
    band.median.push_back(QuantileOf(ascending, 0.5));
    band.p90.push_back(QuantileOf(ascending, 0.9));
    band.max.push_back(QuantileOf(ascending, 1));
  }
  return band;
}

}  // namespace

Result<BandAxis> ParseBandAxis(std::string_view text) {
  if (text == "time") return BandAxis::kTime;
  if (text == "share") return BandAxis::kShare;
  return Status(Code::kInvalid, fmt::format("expected time or share, not '{}'", text));
}

Result<RunBands> LoadRunBands(const Archive& archive, const FoundRuns& found,
                              const std::vector<std::string>& metrics, BandAxis axis) {
  if (metrics.empty() || metrics.size() > kMostBandMetrics) {
    return Status(Code::kInvalid, fmt::format("expected 1 to {} metrics", kMostBandMetrics));
  }
  WantedMetrics wanted;
  wanted.wanted = [&](const Metric& metric) {
    return std::find(metrics.begin(), metrics.end(), metric.name) != metrics.end();
  };
  RunBands bands;
  bands.axis = axis;
  bands.bins = BinsOf(found, axis);
  bands.runs = found.entries.size();
  for (const ProfileEntry& entry : found.entries) {
    bands.end = std::max(bands.end, SecondsOf(entry.job));
  }
  std::map<std::string, Gathered> all;
  std::set<std::string> left_out;
  for (const ProfileEntry& entry : found.entries) {
    const double seconds = axis == BandAxis::kShare ? SecondsOf(entry.job) : bands.end;
    auto run = ReadBins(archive, entry, entry.job.start, {0, seconds, bands.bins}, wanted);
    if (!run.ok()) return run.status().Within(entry.job.id.ToString());
    for (auto& [name, series] : *run) {
      auto at = all.find(name);
      if (at == all.end() && all.size() == kMostBandSeries) {
        left_out.insert(name);
        continue;
      }
      if (at == all.end()) {
        at = all.emplace(name, Gathered{series.series, series.suffix, series.PerSecond(),
                                        std::vector<std::vector<double>>(bands.bins)})
                 .first;
      }
      at->second.Add(series.bins);
    }
  }
  if (axis == BandAxis::kShare) bands.end = 1;
  bands.left_out = left_out.size();
  for (auto& [name, gathered] : all) {
    size_t most = 0;
    for (const std::vector<double>& bin : gathered.bins) most = std::max(most, bin.size());
    // All runs reach every share; where few have a value, they would stand for all.
    bands.series.push_back(BandIn(gathered, axis == BandAxis::kShare ? (most + 1) / 2 : 1));
  }
  return bands;
}

std::string RunBandsToJson(const RunBands& bands) {
  std::string out;
  JsonWriter w(out);
  w.BeginObject().Field("axis", bands.axis == BandAxis::kShare ? "share" : "time");
  w.Field("end", bands.end).Field("bins", bands.bins).Field("runs", bands.runs);
  w.Field("left_out", bands.left_out).Key("series").BeginArray();
  for (const RunBand& band : bands.series) {
    w.BeginObject();
    w.Field("name", SeriesName(band.series.metric.name + band.suffix, band.series.tags));
    w.Field("metric", band.series.metric.name).Field("unit", band.series.metric.unit);
    w.Field("per_second", band.per_second).Key("count").BeginArray();
    for (const size_t count : band.count) w.Value(count);
    w.EndArray();
    for (const auto& [name, values] : {std::pair{"min", &band.min},
                                       {"p10", &band.p10},
                                       {"median", &band.median},
                                       {"p90", &band.p90},
                                       {"max", &band.max}}) {
      w.Key(name).BeginArray();
      for (const double value : *values) w.Value(value);
      w.EndArray();
    }
    w.EndObject();
  }
  w.EndArray().EndObject();
  return out + "\n";
}

}  // namespace sonde
