#include "insight/hints/awaited.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "insight/budget.h"
#include "insight/hints/step_facts.h"
#include "insight/robust.h"
#include "insight/steps/step_rows.h"

namespace sonde::insight {
namespace {

// What is read, by rank and by node.
enum Asked : size_t { kCpu, kMpi, kIo, kBlocked, kStopped, kSteal, kThrottled, kPressure };
constexpr WatchedSeries kWatched[] = {
    {"task_cpu_seconds_total", "", ""},
    {"mpi_seconds_total", "", ""},
    {"io_seconds_total", "", ""},
    {"task_processes_blocked", "", ""},
    {"task_processes_stopped", "", ""},
    {"node_cpu_seconds_total", "", "", "mode", "steal"},
    {"cgroup_cpu_throttled_seconds_total", "", ""},
    {"node_pressure_cpu_waiting_seconds_total", "", ""},
};

std::string NameOfRank(const StepRows::Who& who) {
  return fmt::format("task {} on {}", who.rank, who.host);
}

class Awaited {
 public:
  Awaited(const std::vector<StepRows>& read, Facts& facts) : read_(read), facts_(facts) {}

  void Set() {
    for (size_t r = 0; r < read_[kMpi].rows.size(); ++r) AddRank(r);
    if (ranks_.size() < 2) return;
    const auto less = [](const Rank& a, const Rank& b) { return a.mpi < b.mpi; };
    const auto [least, most] = std::minmax_element(ranks_.begin(), ranks_.end(), less);
    SetEnds(*least, *most);
    SetWork(*least, *most);
    SetHeld(*least);
    AddSerialRanks(mpi_, facts_.Number("tasks"), facts_);
  }

 private:
  // Per second, in the mean.
  struct Rank {
    StepRows::Who who;
    double cpu = 0;
    double mpi = 0;
  };

  void AddRank(size_t row) {
    const StepRows& mpi = read_[kMpi];
    const StepRows& cpu = read_[kCpu];
    const size_t own = cpu.OfRank(mpi.who[row].rank);
    if (own >= cpu.rows.size()) return;
    mpi_.push_back(mpi.rows[row]);
    SpreadCalls(mpi_.back());
    Rank rank{mpi.who[row], MeanOf(cpu.rows[own]), std::min(1.0, MeanOf(mpi_.back()))};
    if (!std::isnan(rank.cpu) && !std::isnan(rank.mpi)) ranks_.push_back(std::move(rank));
  }

  void SetEnds(const Rank& least, const Rank& most) {
    facts_.Set("mpi_least_share", least.mpi);
    facts_.Set("mpi_most_share", most.mpi);
    facts_.SetText("mpi_least_by", NameOfRank(least.who));
    facts_.SetText("mpi_least_node", least.who.host);
    facts_.SetText("mpi_most_by", NameOfRank(most.who));
  }

  void SetWork(const Rank& least, const Rank& most) {
    constexpr double kClearly = 0.05;
    const bool polls = most.cpu > 1 - most.mpi + kClearly;
    const auto computing = [&](const Rank& rank) {
      return polls ? rank.cpu * (1 - rank.mpi) : rank.cpu;
    };
    const auto share = [&](const Rank& rank) { return computing(rank) / (1 - rank.mpi); };
    std::vector<double> others, shares;
    double sum = 0;
    for (const Rank& rank : ranks_) {
      sum += computing(rank);
      if (&rank != &least) others.push_back(computing(rank));
      if (rank.mpi < 1) shares.push_back(share(rank));
    }
    const double own = computing(least);
    const double mean = sum / static_cast<double>(ranks_.size());
    if (const double median = MedianOf(others); median > 0) {
      facts_.Set("awaited_work", own / median - 1);
    }
    if (own > 0) facts_.Set("awaited_excess", std::max(0.0, 1 - mean / own));
    const double median = MedianOf(shares);
    if (median > 0 && least.mpi < 1) facts_.Set("awaited_cpu", share(least) / median);
  }

  double OfRank(Asked what, const Rank& rank) const {
    const StepRows& rows = read_[what];
    const size_t own = rows.OfRank(rank.who.rank);
    return own < rows.rows.size() ? MeanOf(rows.rows[own]) : kNoNumber;
  }
  // What the node has more than the median of the nodes; at least 0.
  double Beyond(Asked what, size_t node) const {
    const StepRows& rows = read_[what];
    const size_t own = rows.OfNode(node);
    if (own >= rows.rows.size()) return kNoNumber;
    std::vector<double> all;
    for (const Row& row : rows.rows) all.push_back(MeanOf(row));
    return std::max(0.0, MeanOf(rows.rows[own]) - MedianOf(all));
  }
  void SetHeld(const Rank& least) {
    facts_.Set("awaited_io", std::fmax(OfRank(kIo, least), OfRank(kBlocked, least)));
    double held = OfRank(kStopped, least);
    for (const Asked what : {kSteal, kThrottled, kPressure}) {
      held = std::fmax(held, Beyond(what, least.who.node));
    }
    facts_.Set("awaited_held", held);
  }

  const std::vector<StepRows>& read_;
  Facts& facts_;
  std::vector<Rank> ranks_;
  std::vector<Row> mpi_;
};

}  // namespace

Status AddAwaited(const Archive& archive, const std::string& key, const Profile& profile,
                  const TickGrid& grid, Facts& facts) {
  std::vector<AskedRows> asked;
  for (size_t i = 0; i < std::size(kWatched); ++i) {
    AskedRows one{kWatched[i], i >= kSteal ? RowsBy::kNode : RowsBy::kRank};
    if (i == kMpi || i == kIo) one.before = BeforeFirst::kZeroATickAgo;
    asked.push_back(one);
  }
  // The node whose rank has least by any series, and some others spread over the step.
  const std::vector<NodeInfo>& all = profile.job.nodes;
  std::set<size_t> nodes;
  for (const FootprintEntry& entry : profile.footprint) {
    if (entry.series.metric.name != "mpi_seconds_total") continue;
    if (entry.min_owner.node < all.size()) nodes.insert(entry.min_owner.node);
    if (nodes.size() >= kMostBeside) break;
  }
  const size_t others = std::min(all.size(), kMostBeside);
  for (size_t i = 0; i < others; ++i) nodes.insert(i * all.size() / others);
  const auto read = ReadStepRows(archive, key, profile.job, grid, asked, nodes);
  if (!read.ok()) return read.status();
  Awaited(*read, facts).Set();
  return {};
}

}  // namespace sonde::insight
