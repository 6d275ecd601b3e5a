#include "insight/steps/step_rates.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <span>
#include <utility>

#include "insight/robust.h"

namespace sonde::insight {
namespace {

// What is read, in this order; those of MPI first.
enum Asked : uint8_t {
  kMpi,
  kWait,
  kCollective,
  kCollectiveWait,
  kMpiIo,
  kCollectiveCalls,
  kMpiRows,  // so many are of MPI
  kUser = kMpiRows,
  kSystem,
  kIoCalls,
  kBlocked,
  kSteal,
  kBusy,
  kThrottled,
  kPressure,
  kNodePressure,
  kGpu,
};
const AskedRows kAsked[] = {
    {{"mpi_seconds_total", "", ""}, RowsBy::kRank, BeforeFirst::kZeroATickAgo},
    {{"mpi_wait_seconds_total", "", ""}, RowsBy::kRank, BeforeFirst::kZeroATickAgo},
    {{"mpi_seconds_total", "", "", "class", "collective"},
     RowsBy::kRank,
     BeforeFirst::kZeroATickAgo},
    {{"mpi_wait_seconds_total", "", "", "class", "collective"},
     RowsBy::kRank,
     BeforeFirst::kZeroATickAgo},
    {{"mpi_seconds_total", "", "", "class", "io"}, RowsBy::kRank, BeforeFirst::kZeroATickAgo},
    {{"mpi_calls_total", "", "", "class", "collective"}, RowsBy::kRank, BeforeFirst::kZeroATickAgo},
    {{"task_cpu_seconds_total", "", "", "mode", "user"}, RowsBy::kRank},
    {{"task_cpu_seconds_total", "", "", "mode", "system"}, RowsBy::kRank},
    {{"io_seconds_total", "", ""}, RowsBy::kRank, BeforeFirst::kZeroATickAgo},
    {{"task_processes_blocked", "", ""}, RowsBy::kRank},
    {{"node_cpu_seconds_total", "", "", "mode", "steal"}, RowsBy::kNode},
    {{"node_cpu_seconds_total", "", "", "mode", "busy"}, RowsBy::kNode},
    {{"cgroup_cpu_throttled_seconds_total", "", ""}, RowsBy::kNode},
    {{"cgroup_pressure_cpu_waiting_seconds_total", "", ""}, RowsBy::kNode},
    {{"node_pressure_cpu_waiting_seconds_total", "", ""}, RowsBy::kNode},
    {{"gpu_utilization_ratio", "", ""}, RowsBy::kNode},
};

size_t GpusOf(const Profile& profile) {
  std::set<std::string> gpus;
  for (const FootprintEntry& entry : profile.footprint) {
    const std::string* gpu = entry.series.tags.Find("gpu");
    if (gpu != nullptr && entry.series.metric.name == "gpu_utilization_ratio") gpus.insert(*gpu);
  }
  return gpus.size();
}

// The rank's row, taken out; empty if there is none, or nothing in it.
Row TakeRow(StepRows& rows, uint32_t rank) {
  const size_t at = rows.OfRank(rank);
  if (at >= rows.rows.size()) return {};
  Row out = std::move(rows.rows[at]);
  const bool any = std::any_of(out.begin(), out.end(), [](double x) { return !std::isnan(x); });
  return any ? out : Row();
}
const Row* RowOfNode(const StepRows& rows, size_t node) {
  const size_t at = rows.OfNode(node);
  return at < rows.rows.size() ? &rows.rows[at] : nullptr;
}
double At(const Row* row, size_t tick) { return row == nullptr ? kNoNumber : (*row)[tick]; }
double OrNone(double value) { return std::isnan(value) ? 0 : value; }
// The larger one of those that are known.
double Larger(double a, double b) { return std::isnan(a) || b > a ? b : a; }

double CpuAt(const RankRates& rates, size_t tick) {
  const double system = tick < rates.system.size() ? rates.system[tick] : 0;
  return tick < rates.user.size() ? rates.user[tick] + OrNone(system) : kNoNumber;
}

// Less what waits within collectives: it is in both.
void TakeOff(const Row& part, Row& row) {
  for (size_t t = 0; t < std::min(part.size(), row.size()); ++t) {
    if (!std::isnan(part[t])) row[t] = std::max(0.0, row[t] - part[t]);
  }
}

}  // namespace

StepRates::StepRates(const Archive& archive, const std::string& key, const Profile& profile,
                     const TickGrid& grid, double cpus)
    : archive_(archive),
      key_(key),
      profile_(profile),
      grid_(grid),
      cpus_(cpus),
      gpus_(GpusOf(profile)) {}

size_t StepRates::SeriesOfRank(const Profile& profile) {
  const auto series = std::count_if(
      profile.footprint.begin(), profile.footprint.end(), [](const FootprintEntry& entry) {
        return std::any_of(std::begin(kAsked), std::end(kAsked), [&](const AskedRows& one) {
          return one.watched.metric == entry.series.metric.name;
        });
      });
  return std::max<size_t>(1, static_cast<size_t>(series));
}

Result<std::vector<StepRank>> StepRates::ReadMpi(const std::set<size_t>& nodes) const {
  auto rows =
      ReadStepRows(archive_, key_, profile_.job, grid_, std::span(kAsked).first(kMpiRows), nodes);
  if (!rows.ok()) return rows.status();
  std::vector<StepRank> out;
  for (const StepRows::Who& who : (*rows)[kMpi].who) {
    StepRank& rank = out.emplace_back();
    rank.who = who;
    TakeMpi(*rows, rank);
    SpreadCalls(rank.rates);
  }
  return out;
}

Result<std::vector<StepRank>> StepRates::Read(const std::set<size_t>& nodes) {
  auto rows = ReadStepRows(archive_, key_, profile_.job, grid_, kAsked, nodes);
  if (!rows.ok()) return rows.status();
  std::vector<StepRank> out;
  for (const StepRows::Who& who : (*rows)[kUser].who) {
    StepRank& rank = out.emplace_back();
    rank.who = who;
    rank.rates.cpus = cpus_;
    rank.rates.user = TakeRow((*rows)[kUser], who.rank);
    rank.rates.system = TakeRow((*rows)[kSystem], who.rank);
    rank.rates.io = TakeRow((*rows)[kIoCalls], who.rank);
    rank.rates.blocked = TakeRow((*rows)[kBlocked], who.rank);
    TakeMpi(*rows, rank);
    SpreadCalls(rank.rates);
  }
  Divide(*rows, out);
  return out;
}

void StepRates::TakeMpi(std::vector<StepRows>& rows, StepRank& rank) const {
  RankRates& rates = rank.rates;
  rates.mpi = TakeRow(rows[kMpi], rank.who.rank);
  rates.wait = TakeRow(rows[kWait], rank.who.rank);
  rates.collective = TakeRow(rows[kCollective], rank.who.rank);
  rank.in_collectives = rates.collective;
  TakeOff(TakeRow(rows[kCollectiveWait], rank.who.rank), rates.collective);
  rates.mpi_io = TakeRow(rows[kMpiIo], rank.who.rank);
  if (rates.mpi.empty()) return;
  rank.collectives = 0;
  for (const double calls : TakeRow(rows[kCollectiveCalls], rank.who.rank)) {
    rank.collectives += OrNone(calls) * grid_.Seconds();
  }
}

// What is known of nodes, among their ranks.
void StepRates::Divide(const std::vector<StepRows>& rows, std::vector<StepRank>& ranks) {
  std::map<size_t, std::vector<StepRank*>> by_node;
  for (StepRank& rank : ranks) by_node[rank.who.node].push_back(&rank);
  for (const auto& [node, own] : by_node) {
    DivideStolen(rows, node, own);
    if (const Row* gpu = RowOfNode(rows[kGpu], node)) DivideGpu(*gpu, own);
  }
}

void StepRates::DivideStolen(const std::vector<StepRows>& rows, size_t node,
                             const std::vector<StepRank*>& ranks) {
  const Row* steal = RowOfNode(rows[kSteal], node);
  const Row* busy = RowOfNode(rows[kBusy], node);
  const Row* throttled = RowOfNode(rows[kThrottled], node);
  const Row* pressure = RowOfNode(rows[kPressure], node);
  seen_.steal |= steal != nullptr;
  seen_.throttled |= throttled != nullptr;
  const Row* of_all = pressure == nullptr ? RowOfNode(rows[kNodePressure], node) : nullptr;
  seen_.pressure |= pressure != nullptr;
  seen_.node_pressure |= of_all != nullptr;
  if (steal == nullptr && throttled == nullptr && pressure == nullptr && of_all == nullptr) return;
  for (StepRank* rank : ranks) rank->rates.stolen.assign(grid_.count, kNoNumber);
  const auto even = 1 / static_cast<double>(ranks.size());
  for (size_t t = 0; t < grid_.count; ++t) {
    double all = 0;
    for (const StepRank* rank : ranks) all += OrNone(CpuAt(rank->rates, t));
    const double waited = Larger(At(throttled, t), At(pressure, t));
    const double stolen = At(steal, t), used = At(busy, t), others = At(of_all, t);
    if (std::isnan(waited) && std::isnan(stolen) && std::isnan(others)) continue;
    for (StepRank* rank : ranks) {
      const double own = OrNone(CpuAt(rank->rates, t));
      const double of_node = used > 0 ? std::min(1.0, own / used) : even;
      const double of_step = all > 0 ? own / all : even;
      const double of_group = OrNone(waited) * of_step;
      rank->rates.stolen[t] =
          OrNone(stolen) * of_node + std::max(of_group, OrNone(others) * of_node);
    }
  }
}

void StepRates::DivideGpu(const Row& gpu, const std::vector<StepRank*>& ranks) {
  seen_.gpu = true;
  const auto shares = static_cast<double>(std::max(ranks.size(), gpus_));
  for (StepRank* rank : ranks) {
    rank->rates.gpu = gpu;
    for (double& value : rank->rates.gpu) value = std::min(1.0, value / shares);
  }
}

}  // namespace sonde::insight
