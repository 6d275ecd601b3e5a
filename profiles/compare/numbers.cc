#include "profiles/compare/numbers.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "profiles/compare/weight.h"
#include "profiles/model/moments.h"
#include "profiles/report/moments.h"

namespace sonde {
namespace {

struct SummaryField {
  CompareSection section;
  std::string_view name;
  std::string_view unit;
  std::string_view metric;
  double (*number)(const Summary&);
};
constexpr SummaryField kSummary[] = {
    {CompareSection::kTime, "duration", "seconds", "", [](const Summary& s) { return s.duration; }},
    {CompareSection::kCpu, "CPU time", "seconds", "task_cpu_seconds_total",
     [](const Summary& s) { return s.cpu_seconds; }},
    {CompareSection::kCpu, "user", "seconds", "task_cpu_seconds_total",
     [](const Summary& s) { return s.cpu_user; }},
    {CompareSection::kCpu, "system", "seconds", "task_cpu_seconds_total",
     [](const Summary& s) { return s.cpu_system; }},
    {CompareSection::kCpu, "use by tasks", "ratio", "task_cpu_seconds_total",
     [](const Summary& s) { return s.cpu_of_tasks; }},
    {CompareSection::kMemory, "peak of a node", "bytes", "task_resident_memory_bytes",
     [](const Summary& s) { return s.memory_peak.value; }},
    {CompareSection::kIo, "tasks read", "bytes", "task_read_bytes_total",
     [](const Summary& s) { return s.task_read; }},
    {CompareSection::kIo, "tasks wrote", "bytes", "task_written_bytes_total",
     [](const Summary& s) { return s.task_written; }},
    {CompareSection::kIo, "disks read", "bytes", "node_disk_read_bytes_total",
     [](const Summary& s) { return s.disk_read; }},
    {CompareSection::kIo, "disks wrote", "bytes", "node_disk_written_bytes_total",
     [](const Summary& s) { return s.disk_written; }},
    {CompareSection::kIo, "received", "bytes", "node_network_receive_bytes_total",
     [](const Summary& s) { return s.network_received; }},
    {CompareSection::kIo, "sent", "bytes", "node_network_transmit_bytes_total",
     [](const Summary& s) { return s.network_sent; }},
};

double NumberOf(const FootprintEntry& entry) {
  return IsCounting(entry.series.metric.type) ? entry.last : entry.mean;
}

void AddSummary(const Summary& summary, std::vector<RunNumber>& numbers) {
  for (const SummaryField& field : kSummary) {
    const bool memory = field.section == CompareSection::kMemory;
    numbers.push_back(
        {{field.section, std::string(field.name), std::string(field.unit),
          std::string(field.metric), !memory, memory ? Reduction::kMax : Reduction::kSum, false},
         field.number(summary)});
  }
}

// Of two with the same name the first one counts.
void AddFigures(const Profile& profile, std::vector<RunNumber>& numbers) {
  const size_t first = numbers.size();
  for (const Figure& figure : profile.job.figures) {
    const bool known =
        std::any_of(numbers.begin() + static_cast<ptrdiff_t>(first), numbers.end(),
                    [&](const RunNumber& one) { return one.kind.name == figure.name; });
    if (known) continue;
    numbers.push_back(
        {{CompareSection::kFigures, figure.name, figure.unit, "", false, Reduction::kSum, false},
         figure.value});
  }
}

void AddFootprint(const Profile& profile, std::vector<RunNumber>& numbers) {
  const std::vector<const FootprintEntry*> all = ApplicationEntries(profile);
  const std::unordered_set<const FootprintEntry*> application(all.begin(), all.end());
  std::unordered_set<std::string> known;
  for (const FootprintEntry& entry : profile.footprint) {
    const Metric& metric = entry.series.metric;
    std::string name = SeriesName(metric.name, entry.series.tags);
    if (!known.insert(name).second) continue;
    const CompareSection section = metric.name.starts_with("gpu_") ? CompareSection::kGpu
                                   : application.contains(&entry)  ? CompareSection::kApplication
                                                                   : CompareSection::kOther;
    numbers.push_back({{section, std::move(name), metric.unit, metric.name, IsCounting(metric.type),
                        metric.reduction, IsOfPseudoFilesystem(entry.series.tags)},
                       NumberOf(entry),
                       IsToldAbove(profile, entry)});
  }
}

}  // namespace

std::vector<RunNumber> NumbersOf(const ComparedRun& run) {
  std::vector<RunNumber> numbers;
  numbers.reserve(run.profile.footprint.size() + 20);
  AddSummary(run.summary, numbers);
  const Nanos end = run.profile.job.end;
  for (const PhaseTotal& phase : PhaseTotals(run.profile.moments, end, false)) {
    numbers.push_back(
        {{CompareSection::kPhases, phase.name, "seconds", "", false, Reduction::kSum, false},
         phase.seconds});
  }
  AddFigures(run.profile, numbers);
  AddFootprint(run.profile, numbers);
  std::stable_sort(numbers.begin(), numbers.end(), [](const RunNumber& a, const RunNumber& b) {
    return a.kind.section < b.kind.section;
  });
  return numbers;
}

}  // namespace sonde
