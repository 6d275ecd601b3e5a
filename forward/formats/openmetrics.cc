#include "forward/formats/openmetrics.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "core/prometheus_text.h"
#include "forward/formats/columns.h"
#include "profiles/archive/step_numbers.h"

namespace sonde::forward {
namespace {

using OnSample = std::function<void(const Line& line, Nanos time, double value)>;

// Every sample of the profile that the destination wants.
Status ForEachSample(const Archive& archive, const ProfileEntry& entry,
                     const Destination& destination, const OnSample& f) {
  using Lines = std::vector<std::unique_ptr<Line>>;
  std::map<std::tuple<uint32_t, std::string, uint64_t>, Lines> known;
  StepNumbers numbers(entry.job.presence);
  std::vector<double> row_numbers;
  const RowsWanted wanted = RowsFor(entry.job, destination);
  return archive.ReadRows(entry.key, destination.scope, wanted, [&](const StoredRow& row) {
    const auto [at, is_new] =
        known.try_emplace({row.node, std::string(row.group), row.schema->id()});
    if (is_new) at->second = LinesOf(entry.job, row.node, row.group, *row.schema, destination);
    const bool reduced = row.node == kReducedNode;
    if (reduced) numbers.Add(row, row_numbers);
    if (row.time() < destination.since) return Status();
    const Lines& lines = at->second;
    for (size_t i = 0; i < lines.size(); ++i) {
      if (lines[i] == nullptr) continue;
      const double value = reduced ? row_numbers[i] : row.block.Column(i)[row.row];
      if (!std::isnan(value)) f(*lines[i], row.time(), value);
    }
    return Status();
  });
}

std::string FamilyOf(const Line& line) {
  return std::string(prometheus::FamilyOf(line.name, line.metric.type));
}

struct Family {
  Metric metric;
  std::string sample;                                 // the name of its samples
  std::map<std::string, std::vector<Sample>> series;  // by labels
};

Status WriteFamily(const std::string& name, Family& family, const TextSink& sink,
                   Written& written) {
  std::string out;
  prometheus::AppendOpenMetricsHead(name, family.sample, family.metric.type, family.metric.unit,
                                    family.metric.help, out);
  for (auto& [labels, samples] : family.series) {
    ++written.series;
    std::stable_sort(samples.begin(), samples.end(),
                     [](const Sample& a, const Sample& b) { return a.time < b.time; });
    // Of samples in one millisecond the last one counts, as in answers to queries.
    for (size_t i = 0; i < samples.size(); ++i) {
      const Sample& sample = samples[i];
      const int64_t millis = ToMillis(sample.time);
      if (i + 1 < samples.size() && ToMillis(samples[i + 1].time) == millis) continue;
      ++written.samples;
      out += family.sample;
      out += labels;
      out += ' ';
      prometheus::AppendNumber(sample.value, out);
      out += fmt::format(" {}.{:03}\n", millis / 1000, millis % 1000);
      if (out.size() < kPiece) continue;
      SONDE_RETURN_IF_ERROR(sink(out));
      out.clear();
    }
  }
  return sink(out);
}

// Families in the order of their names, in groups that `held` samples allow.
std::vector<std::set<std::string>> Plan(const std::map<std::string, uint64_t>& counts,
                                        uint64_t held) {
  std::vector<std::set<std::string>> plan;
  uint64_t sum = 0;
  for (const auto& [name, count] : counts) {
    if (plan.empty() || sum + count > held) {
      plan.emplace_back();
      sum = 0;
    }
    sum += count;
    plan.back().insert(name);
  }
  return plan;
}

}  // namespace

Result<Written> WriteOpenMetrics(const Archive& archive, std::vector<ProfileEntry> profiles,
                                 const Destination& destination, const TextSink& sink,
                                 uint64_t held) {
  std::sort(profiles.begin(), profiles.end(),
            [](const ProfileEntry& a, const ProfileEntry& b) { return a.job.start < b.job.start; });
  std::map<std::string, uint64_t> counts;
  for (const ProfileEntry& entry : profiles) {
    std::unordered_map<const Line*, uint64_t*> places;
    SONDE_RETURN_IF_ERROR(
        ForEachSample(archive, entry, destination, [&](const Line& line, Nanos, double) {
          const auto [at, is_new] = places.try_emplace(&line, nullptr);
          if (is_new) at->second = &counts[FamilyOf(line)];
          ++*at->second;
        }));
  }
  Written written;
  for (const std::set<std::string>& names : Plan(counts, held)) {
    std::map<std::string, Family> families;
    for (const ProfileEntry& entry : profiles) {
      std::unordered_map<const Line*, std::vector<Sample>*> places;  // nullptr: in another pass
      SONDE_RETURN_IF_ERROR(ForEachSample(
          archive, entry, destination, [&](const Line& line, Nanos time, double value) {
            const auto [at, is_new] = places.try_emplace(&line, nullptr);
            if (is_new && names.contains(FamilyOf(line))) {
              Family& family = families[FamilyOf(line)];
              if (family.sample.empty()) family.metric = line.metric, family.sample = line.name;
              at->second = &family.series[prometheus::Labels(line.labels)];
            }
            if (at->second != nullptr) at->second->push_back({time, value});
          }));
    }
    for (auto& [name, family] : families) {
      SONDE_RETURN_IF_ERROR(WriteFamily(name, family, sink, written));
    }
  }
  SONDE_RETURN_IF_ERROR(sink("# EOF\n"));
  return written;
}

Result<Written> CountSamples(const Archive& archive, const std::vector<ProfileEntry>& profiles,
                             const Destination& destination) {
  Written written;
  for (const ProfileEntry& entry : profiles) {
    std::set<const Line*> lines;
    SONDE_RETURN_IF_ERROR(
        ForEachSample(archive, entry, destination, [&](const Line& line, Nanos, double) {
          ++written.samples;
          lines.insert(&line);
        }));
    written.series += lines.size();
  }
  return written;
}

}  // namespace sonde::forward
