#include "forward/openmetrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "forward/columns.h"
#include "forward/step_numbers.h"

namespace sonde::forward {
namespace {

using OnSample = std::function<void(const Line& line, Nanos time, double value)>;

// Every sample of the profile that the destination wants.
Status ForEachSample(const Archive& archive, const ProfileEntry& entry,
                     const Destination& destination, const OnSample& f) {
  using Lines = std::vector<std::unique_ptr<Line>>;
  std::map<std::tuple<uint32_t, std::string, uint64_t>, Lines> known;
  StepNumbers numbers;
  std::vector<double> row_numbers;
  RowsWanted wanted;
  wanted.end = destination.until;
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

std::string Labels(const Tags& tags) {
  std::string out = "{";
  for (const auto& [key, value] : tags.pairs()) {
    if (out.size() > 1) out += ',';
    out += key + "=\"";
    for (const char c : value) {
      if (c == '\\' || c == '"') out += '\\';
      out += c;
    }
    out += '"';
  }
  return out + "}";
}

// A counter's family is without the _total of its samples.
std::string FamilyOf(const Line& line) {
  constexpr std::string_view kTotal = "_total";
  std::string name = line.name;
  if (line.metric.type == MetricType::kCounter && name.ends_with(kTotal)) {
    name.resize(name.size() - kTotal.size());
  }
  return name;
}

struct Family {
  Metric metric;
  std::string sample;                                 // the name of its samples
  std::map<std::string, std::vector<Sample>> series;  // by labels
};

void WriteHead(const std::string& name, const Family& family, std::string& out) {
  const bool counter = family.metric.type == MetricType::kCounter && family.sample != name;
  const std::string_view type = counter                                    ? "counter"
                                : family.metric.type == MetricType::kGauge ? "gauge"
                                                                           : "unknown";
  out += fmt::format("# TYPE {} {}\n", name, type);
  const std::string& unit = family.metric.unit;
  if (!unit.empty() && name.ends_with("_" + unit)) out += fmt::format("# UNIT {} {}\n", name, unit);
  if (family.metric.help.empty()) return;
  out += fmt::format("# HELP {} ", name);
  for (const char c : family.metric.help) {
    if (c == '\\' || c == '"') out += '\\';
    out += c;
  }
  out += '\n';
}

void WriteNumber(double value, std::string& out) {
  if (std::isinf(value)) {
    out += value > 0 ? "+Inf" : "-Inf";
    return;
  }
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof text, value);
  out.append(text, end);
}

Status WriteFamily(const std::string& name, Family& family, const TextSink& sink,
                   Written& written) {
  constexpr size_t kPiece = 1u << 20;
  std::string out;
  WriteHead(name, family, out);
  for (auto& [labels, samples] : family.series) {
    ++written.series;
    std::stable_sort(samples.begin(), samples.end(),
                     [](const Sample& a, const Sample& b) { return a.time < b.time; });
    int64_t before = INT64_MIN;
    for (const Sample& sample : samples) {
      const int64_t millis = ToMillis(sample.time);
      if (std::exchange(before, millis) == millis) continue;
      ++written.samples;
      out += family.sample;
      out += labels;
      out += ' ';
      WriteNumber(sample.value, out);
      out += fmt::format(" {}.{:03}\n", millis / 1000, millis % 1000);
      if (out.size() < kPiece) continue;
      SONDE_RETURN_IF_ERROR(sink(out));
      out.clear();
    }
  }
  return sink(out);
}

// Families in the order of their names, as many together as `held` samples allow.
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
      std::unordered_map<const Line*, std::vector<Sample>*> places;  // nullptr: another time
      SONDE_RETURN_IF_ERROR(ForEachSample(
          archive, entry, destination, [&](const Line& line, Nanos time, double value) {
            const auto [at, is_new] = places.try_emplace(&line, nullptr);
            if (is_new && names.contains(FamilyOf(line))) {
              Family& family = families[FamilyOf(line)];
              if (family.sample.empty()) family.metric = line.metric, family.sample = line.name;
              at->second = &family.series[Labels(line.labels)];
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
