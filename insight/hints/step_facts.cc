#include "insight/hints/step_facts.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "insight/hints/awaited.h"
#include "insight/hints/job_facts.h"
#include "insight/hints/profile_facts.h"
#include "insight/robust.h"
#include "insight/steps/tick_grid.h"
#include "insight/steps/whole_step.h"

namespace sonde::insight {
namespace {

constexpr size_t kFewestTicks = 10;
constexpr double kMostlyKnown = 0.5;
constexpr double kLittleMpi = 0.05;  // of the time: nobody need ask who is awaited
constexpr size_t kMostParts = 24;
constexpr size_t kFewestParts = 10;
constexpr size_t kAround = 2;  // ticks on both sides

// The medians of equal parts; NaN: nothing is known of one.
std::vector<double> MediansOfParts(std::span<const double> values, size_t parts) {
  std::vector<double> medians;
  for (size_t i = 0; i < parts; ++i) {
    const size_t begin = i * values.size() / parts;
    const size_t end = (i + 1) * values.size() / parts;
    medians.push_back(MedianOf(values.subspan(begin, end - begin)));
  }
  return medians;
}

// The median of each tick and those around it.
Row Smoothed(std::span<const double> values) {
  Row out;
  for (size_t t = 0; t < values.size(); ++t) {
    const size_t begin = t < kAround ? 0 : t - kAround;
    const size_t end = std::min(values.size(), t + kAround + 1);
    const double median = MedianOf(values.subspan(begin, end - begin));
    out.push_back(std::isnan(values[t]) ? kNoNumber : median);
  }
  return out;
}

// Theil and Sen's, per part.
double SlopeOf(std::span<const double> values) {
  std::vector<double> slopes;
  for (size_t i = 0; i < values.size(); ++i) {
    for (size_t j = i + 1; j < values.size(); ++j) {
      if (std::isnan(values[i]) || std::isnan(values[j])) continue;
      slopes.push_back((values[j] - values[i]) / static_cast<double>(j - i));
    }
  }
  return MedianOf(slopes);
}

// Counts ticks in which one works, and in which more do.
class SerialTicks {
 public:
  void Add(double working, bool serial) {
    ++known_;
    if (serial) {
      ++serial_;
    } else if (working > kSeveral) {
      ++parallel_;
      sum_ += working;
    }
  }
  void Set(size_t ticks, Facts& facts) const {
    const bool enough =
        known_ >= kFewestTicks && known_ >= kMostlyKnown * static_cast<double>(ticks);
    if (!enough || parallel_ == 0) return;
    facts.Set("serial_share", serial_ / known_);
    facts.Set("cpus_else", sum_ / parallel_);
  }

 private:
  static constexpr double kSeveral = 1.1;
  double known_ = 0, serial_ = 0, parallel_ = 0, sum_ = 0;
};

Status AddSeries(const Archive& archive, const std::string& key, const Profile& profile,
                 const TickGrid& grid, Facts& facts) {
  static const std::vector<std::string> kMetrics = {"task_cpu_seconds_total",
                                                    "task_resident_memory_bytes"};
  std::vector<StepColumn> columns;
  std::vector<Row> rows;
  SONDE_RETURN_IF_ERROR(ReadWholeStep(archive, key, profile, grid, kMetrics, columns, rows));
  std::map<std::string, Row> by_metric;
  for (size_t i = 0; i < columns.size(); ++i) by_metric[columns[i].metric] = std::move(rows[i]);
  AddCpuFacts(by_metric[kMetrics[0]], facts);
  AddGrowthFacts(by_metric[kMetrics[1]], grid.Seconds(), facts);
  return {};
}

}  // namespace

void AddCpuFacts(std::span<const double> cpus, Facts& facts) {
  constexpr double kLeast = 0.7;
  constexpr double kMost = 1.1;
  constexpr double kBusiest = 0.05;
  std::vector<double> known;
  std::copy_if(cpus.begin(), cpus.end(), std::back_inserter(known),
               [](double x) { return !std::isnan(x); });
  if (known.size() < kFewestTicks) return;
  const auto rest = static_cast<ptrdiff_t>((1 - kBusiest) * static_cast<double>(known.size() - 1));
  std::nth_element(known.begin(), known.begin() + rest, known.end());
  facts.Set("cpus_most", known[static_cast<size_t>(rest)]);
  // Ranks that wait in MPI poll, and are busy.
  if (!std::isnan(facts.Number("mpi_share"))) return;
  const double sum = std::accumulate(known.begin(), known.end(), 0.0);
  if (sum <= kMost * static_cast<double>(known.size())) return;  // late samples, not several
  SerialTicks ticks;
  for (const double busy : Smoothed(cpus)) {
    if (!std::isnan(busy)) ticks.Add(busy, busy >= kLeast && busy <= kMost);
  }
  ticks.Set(cpus.size(), facts);
}

void AddSerialRanks(std::span<const Row> mpi, double tasks, Facts& facts) {
  constexpr double kWaits = 0.8;
  constexpr double kWorks = 0.5;
  if (mpi.size() < 2) return;
  std::vector<Row> smooth;
  smooth.reserve(mpi.size());
  for (const Row& row : mpi) smooth.push_back(Smoothed(row));
  SerialTicks ticks;
  for (size_t t = 0; t < smooth.front().size(); ++t) {
    double working = 0, waiting = 0, outside = 0, known = 0;
    for (const Row& row : smooth) {
      if (t >= row.size() || std::isnan(row[t])) continue;
      ++known;
      working += row[t] < kWorks ? 1 : 0;
      waiting += row[t] >= kWaits ? 1 : 0;
      outside += 1 - std::min(1.0, row[t]);
    }
    if (known < 2) continue;
    ticks.Add(outside * tasks / known, working == 1 && working + waiting == known);
  }
  ticks.Set(smooth.front().size(), facts);
}

void AddGrowthFacts(std::span<const double> memory, double width, Facts& facts) {
  const size_t number = std::min(kMostParts, memory.size() / 2);
  if (number < kFewestParts) return;
  const std::vector<double> all = MediansOfParts(memory, number);
  // The last samples may be of tasks that are being taken down.
  const std::span<const double> parts = std::span(all).subspan(1, all.size() - 2);
  if (std::any_of(parts.begin(), parts.end(), [](double x) { return std::isnan(x); })) return;
  const double slope = SlopeOf(parts);
  const double late = SlopeOf(parts.subspan(parts.size() * 2 / 3));
  double grew = 0;
  for (size_t i = 1; i < parts.size(); ++i) grew += parts[i] > parts[i - 1] ? 1 : 0;
  const double part = width * static_cast<double>(memory.size()) / static_cast<double>(number);
  const bool grows = slope > 0 && late >= slope / 2;
  facts.Set("memory_growth", grows ? slope / part * 3600 : 0);
  facts.Set("memory_grown", parts.back() - parts.front());
  facts.Set("memory_at_end", parts.back());
  facts.Set("memory_steady", grew / static_cast<double>(parts.size() - 1));
}

Result<Facts> FactsOfStep(const Archive& archive, const std::string& key, const Profile& profile,
                          const std::vector<NodeRow>& nodes, Nanos now) {
  Facts facts = FactsOfProfile(profile, Summarize(profile, nodes, now));
  const TickGrid grid = GridOf(profile.job, kMostHintTicks);
  Status status = AddSeries(archive, key, profile, grid, facts);
  if (status.ok() && facts.Number("mpi_share") > kLittleMpi) {
    status = AddAwaited(archive, key, profile, grid, facts);
  }
  if (status.ok()) status = AddJobFacts(archive, profile, now, facts);
  if (!status.ok()) return status;
  return facts;
}

}  // namespace sonde::insight
