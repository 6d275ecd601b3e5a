#include "profiles/compare/compare.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <unordered_map>
#include <utility>

#include "profiles/model/moments.h"
#include "profiles/report/moments.h"

namespace sonde {
namespace {

const double kUnknown = std::nan("");

// The 97.5th percentile of Student's distribution, by degrees of freedom from 1 on.
double StudentT(size_t degrees) {
  static constexpr std::array<double, 30> kT = {
      12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
      2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
      2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042};
  return degrees <= kT.size() ? kT[degrees - 1] : 1.96;
}
constexpr size_t kLeastDegrees = 3;

// A row's question: what is its number in a run?
struct Question {
  CompareSection section;
  std::string name;
  std::string unit;
  std::string metric;
  std::function<double(const ComparedRun&)> number;
};

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

double PhaseSeconds(const ComparedRun& run, const std::string& name) {
  const JobDescription& job = run.profile.job;
  for (const PhaseTotal& phase : PhaseTotals(run.profile.moments, job.end, false)) {
    if (phase.name == name) return phase.seconds;
  }
  return kUnknown;
}

double FigureOf(const ComparedRun& run, const std::string& name) {
  for (const Figure& figure : run.profile.job.figures) {
    if (figure.name == name) return figure.value;
  }
  return kUnknown;
}

double NumberOf(const FootprintEntry& entry) {
  return IsCounting(entry.series.metric.type) ? entry.last : entry.mean;
}

// The numbers of all footprints, by run and series.
class Footprints {
 public:
  void Add(const ComparedGroup& group) {
    for (const ComparedRun& run : group) {
      auto& numbers = runs_[&run];
      for (const FootprintEntry& entry : run.profile.footprint) {
        numbers[SeriesName(entry.series.metric.name, entry.series.tags)] = NumberOf(entry);
      }
    }
  }
  double Find(const ComparedRun& run, const std::string& series) const {
    const auto& numbers = runs_.at(&run);
    const auto at = numbers.find(series);
    return at == numbers.end() ? kUnknown : at->second;
  }

 private:
  std::map<const ComparedRun*, std::unordered_map<std::string, double>> runs_;
};

// Every question that some run can answer, each once.
class Questions {
 public:
  explicit Questions(const Footprints& footprints) : footprints_(footprints) {}
  void Add(const ComparedRun& run) {
    if (all_.empty()) AddSummary();
    for (const PhaseTotal& phase : PhaseTotals(run.profile.moments, run.profile.job.end, false)) {
      Once({CompareSection::kPhases, phase.name, "seconds", "",
            [name = phase.name](const ComparedRun& r) { return PhaseSeconds(r, name); }});
    }
    for (const Figure& figure : run.profile.job.figures) {
      Once({CompareSection::kFigures, figure.name, figure.unit, "",
            [name = figure.name](const ComparedRun& r) { return FigureOf(r, name); }});
    }
    AddFootprint(run.profile);
  }
  std::vector<Question> Take() {
    std::stable_sort(all_.begin(), all_.end(),
                     [](const Question& a, const Question& b) { return a.section < b.section; });
    return std::move(all_);
  }

 private:
  void AddSummary() {
    for (const SummaryField& field : kSummary) {
      Once({field.section, std::string(field.name), std::string(field.unit),
            std::string(field.metric),
            [number = field.number](const ComparedRun& r) { return number(r.summary); }});
    }
  }
  void AddFootprint(const Profile& profile) {
    const auto application = ApplicationEntries(profile);
    for (const FootprintEntry& entry : profile.footprint) {
      const Metric& metric = entry.series.metric;
      if (IsToldAbove(profile, entry)) continue;
      const bool own =
          std::find(application.begin(), application.end(), &entry) != application.end();
      const CompareSection section = metric.name.starts_with("gpu_") ? CompareSection::kGpu
                                     : own                           ? CompareSection::kApplication
                                                                     : CompareSection::kOther;
      const std::string name = SeriesName(metric.name, entry.series.tags);
      Once({section, name, metric.unit, metric.name,
            [&footprints = footprints_, name](const ComparedRun& r) {
              return footprints.Find(r, name);
            }});
    }
  }
  void Once(Question question) {
    const auto key = std::pair(question.section, question.name);
    if (seen_.emplace(key, true).second) all_.push_back(std::move(question));
  }
  const Footprints& footprints_;
  std::map<std::pair<CompareSection, std::string>, bool> seen_;
  std::vector<Question> all_;
};

// How much runs vary about the means of their groups.
struct RunSpread {
  double squares = 0;
  size_t degrees = 0;
  void Add(const Band& band) {
    if (band.count < 2) return;
    for (const double value : band.runs) {
      if (!std::isnan(value)) squares += (value - band.mean) * (value - band.mean);
    }
    degrees += band.count - 1;
  }
  double Deviation() const { return std::sqrt(squares / static_cast<double>(degrees)); }
};

// The standard error of a group's number, from the ups and downs within its runs.
double ErrorWithin(const ComparedGroup& group, const Band& band, const std::string& metric) {
  double most = 0;
  for (const ComparedRun& run : group) {
    const auto found = run.variation.find(metric);
    if (found != run.variation.end()) most = std::max(most, found->second);
  }
  return most * std::abs(band.mean);
}

Change ChangeOf(const Band& base, const Band& other, double noise) {
  Change change;
  change.difference = other.mean - base.mean;
  change.noise = noise;
  const bool one_alone = (base.count == 0) != (other.count == 0);
  change.beyond = one_alone || std::abs(change.difference) > noise;
  return change;
}

CompareRow RowOf(Question question, const std::vector<ComparedGroup>& groups,
                 const ComparedGroup& besides) {
  const auto band = [&](const ComparedGroup& group) {
    std::vector<double> runs;
    for (const ComparedRun& run : group) runs.push_back(question.number(run));
    return BandOf(std::move(runs));
  };
  CompareRow row;
  RunSpread spread;
  for (const ComparedGroup& group : groups) {
    row.groups.push_back(band(group));
    spread.Add(row.groups.back());
  }
  spread.Add(band(besides));
  row.basis = spread.degrees >= kLeastDegrees ? NoiseBasis::kRuns : NoiseBasis::kRule;
  const Band& base = row.groups.front();
  for (size_t g = 1; g < groups.size(); ++g) {
    const Band& other = row.groups[g];
    const double size = std::fmax(std::abs(base.mean), std::abs(other.mean));
    double noise = kNoiseRule * size;
    if (row.basis == NoiseBasis::kRuns) {
      const double runs = 1.0 / static_cast<double>(std::max<size_t>(base.count, 1)) +
                          1.0 / static_cast<double>(std::max<size_t>(other.count, 1));
      noise = std::max(kNoiseLeast * size,
                       StudentT(spread.degrees) * spread.Deviation() * std::sqrt(runs));
    } else {
      const double error = std::hypot(ErrorWithin(groups[0], base, question.metric),
                                      ErrorWithin(groups[g], other, question.metric));
      noise = std::max(noise, 2 * error);
    }
    row.changes.push_back(ChangeOf(base, other, noise));
  }
  row.section = question.section;
  row.name = std::move(question.name);
  row.unit = std::move(question.unit);
  row.metric = std::move(question.metric);
  return row;
}

}  // namespace

std::string_view ToString(CompareSection section) {
  switch (section) {
    case CompareSection::kTime:
      return "time";
    case CompareSection::kCpu:
      return "CPU";
    case CompareSection::kMemory:
      return "memory";
    case CompareSection::kIo:
      return "I/O";
    case CompareSection::kGpu:
      return "GPU";
    case CompareSection::kPhases:
      return "phases";
    case CompareSection::kFigures:
      return "figures";
    case CompareSection::kApplication:
      return "application";
    case CompareSection::kOther:
      break;
  }
  return "other";
}

Band BandOf(std::vector<double> runs) {
  Band band;
  band.mean = band.min = band.max = kUnknown;
  double sum = 0;
  for (const double value : runs) {
    if (std::isnan(value)) continue;
    ++band.count;
    sum += value;
    band.min = std::fmin(band.min, value);
    band.max = std::fmax(band.max, value);
  }
  if (band.count > 0) band.mean = sum / static_cast<double>(band.count);
  band.runs = std::move(runs);
  return band;
}

bool CompareRow::beyond() const {
  return std::any_of(changes.begin(), changes.end(), [](const Change& c) { return c.beyond; });
}

Comparison Compare(const std::vector<ComparedGroup>& groups, const ComparedGroup& besides) {
  Comparison out;
  Footprints footprints;
  for (const ComparedGroup& group : groups) footprints.Add(group);
  footprints.Add(besides);
  Questions questions(footprints);
  out.known_runs = besides.size();
  for (const ComparedGroup& group : groups) {
    out.known_runs += group.size();
    for (const ComparedRun& run : group) questions.Add(run);
  }
  for (Question& question : questions.Take()) {
    CompareRow row = RowOf(std::move(question), groups, besides);
    const bool any = std::any_of(row.groups.begin(), row.groups.end(),
                                 [](const Band& band) { return band.count > 0; });
    if (any) out.rows.push_back(std::move(row));
  }
  return out;
}

}  // namespace sonde
