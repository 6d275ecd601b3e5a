#include "insight/steps/step_budget.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "insight/collective_waits.h"
#include "insight/robust.h"
#include "insight/steps/step_phases.h"
#include "insight/steps/step_rates.h"
#include "profiles/json/writer.h"
#include "profiles/report/calls.h"
#include "profiles/report/used.h"

namespace sonde::insight {
namespace {

// A filler has two numbers for each tick of a series, and a row one.
constexpr size_t kValuesOfTick = 3;
constexpr size_t kFewestBudgetTicks = 60;
constexpr double kClear = 0.01;      // of the CPU time may be in MPI or not: it does not matter
constexpr double kSameCalls = 0.02;  // numbers of collectives that differ by less are the same

// A phase with the ticks that it has a part of, and how many seconds.
struct PhaseTicks {
  PhaseBudget figures;
  std::vector<std::pair<size_t, double>> ticks;
  std::vector<double> computing;  // of each rank
};

void AddInterval(const TickGrid& grid, Nanos begin, Nanos end, PhaseTicks& phase) {
  begin = std::max(begin, grid.first);
  end = std::min(end, grid.Begin(grid.count));
  for (size_t t = grid.At(begin + 1); begin < end && t < grid.count; ++t) {
    const Nanos until = std::min(end, grid.Begin(t + 1));
    phase.ticks.emplace_back(t, static_cast<double>(until - begin) / kSecond);
    begin = until;
  }
}

std::vector<PhaseTicks> ToldPhases(const Profile& profile, const TickGrid& grid) {
  std::vector<PhaseTicks> out;
  for (const Phase& phase : profile.moments.phases) {
    const Nanos end = std::max(phase.begin, phase.end != 0 ? phase.end : profile.job.end);
    auto at = std::find_if(out.begin(), out.end(),
                           [&](const PhaseTicks& one) { return one.figures.name == phase.name; });
    if (at == out.end()) {
      at = out.insert(out.end(), PhaseTicks());
      at->figures.name = phase.name;
      at->figures.begin = phase.begin;
      at->figures.intervals = 0;
    }
    at->figures.seconds += static_cast<double>(end - phase.begin - phase.pauses) / kSecond;
    ++at->figures.intervals;
    AddInterval(grid, phase.begin, end, *at);
  }
  return out;
}

std::vector<PhaseTicks> FoundPhases(const StepPhases& phases, const TickGrid& grid) {
  std::vector<PhaseTicks> out;
  if (phases.found.size() < 2) return out;  // the whole step
  for (const PhaseFigures& found : phases.found) {
    PhaseTicks& phase = out.emplace_back();
    phase.figures.name = found.name;
    phase.figures.begin = found.begin;
    phase.figures.seconds = found.seconds;
    AddInterval(grid, found.begin, found.end, phase);
  }
  return out;
}

// What the profile has of each kind.
struct Seen {
  size_t mpi = 0, polls = 0, blocks = 0, assumed = 0;  // ranks
  size_t mpi_io = 0, io = 0, blocked = 0;
  double collective_waiting = 0;  // CPU seconds
};

class Budgeting {
 public:
  // All of these outlive it.
  Budgeting(const Archive& archive, const std::string& key, const Profile& profile,
            size_t most_values)
      : archive_(archive),
        key_(key),
        profile_(profile),
        most_rows_(most_values / kValuesOfTick / StepRates::SeriesOfRank(profile)) {
    uint32_t largest = 1;
    for (const NodeInfo& node : profile.job.nodes) largest = std::max(largest, node.tasks);
    out_.grid =
        GridOf(profile.job, std::clamp(most_rows_ / largest, kFewestBudgetTicks, kMostBudgetTicks));
    const double cpus = AskedCpusPerTask(profile.job);
    out_.cpus_told = !std::isnan(cpus);
    out_.cpus = out_.cpus_told ? cpus : 1;
  }

  Result<StepBudget> Make() {
    SONDE_RETURN_IF_ERROR(FindPhases());
    const std::vector<std::set<size_t>> groups = Groups();
    LeastCollective least(out_.grid.count);
    CollectiveWaits waits(out_.grid.count, out_.grid.Seconds());
    StepRates rates(archive_, key_, profile_, out_.grid, out_.cpus);
    std::vector<StepRank> ranks;
    for (const std::set<size_t>& group : groups) {
      auto read = groups.size() == 1 ? rates.Read(group) : rates.ReadMpi(group);
      if (!read.ok()) return read.status();
      ranks = *std::move(read);
      for (const StepRank& rank : ranks) AddCollectives(rank, least, waits);
    }
    out_.collectives_split = most_calls_ > 0 && without_ == 0 &&
                             most_calls_ - least_calls_ <= std::max(2.0, kSameCalls * most_calls_);
    for (const std::set<size_t>& group : groups) {
      if (groups.size() > 1) {
        auto read = rates.Read(group);
        if (!read.ok()) return read.status();
        ranks = *std::move(read);
      }
      for (const StepRank& rank : ranks) AddRank(rank, least);
    }
    if (out_.collectives_split) TakeAwaited(waits.Awaited(), &RankBudget::awaited);
    const auto in_receives = AwaitedInReceives(profile_);
    if (!in_receives.empty()) TakeAwaited(in_receives, &RankBudget::awaited_in_receives);
    Finish(rates.seen());
    return std::move(out_);
  }

 private:
  Status FindPhases() {
    phases_ = ToldPhases(profile_, out_.grid);
    out_.phases_told = !phases_.empty();
    if (out_.phases_told) return {};
    const auto found = PhasesOf(archive_, key_, profile_);
    if (!found.ok()) return found.status();
    phases_ = FoundPhases(*found, out_.grid);
    return {};
  }
  // Nodes that are read together.
  std::vector<std::set<size_t>> Groups() {
    const size_t all = profile_.job.nodes.size();
    std::vector<std::set<size_t>> groups = GroupsOf(all);
    for (size_t some = all; groups.size() > kMostBudgetGroups;) {
      some = some * kMostBudgetGroups / groups.size();
      groups = GroupsOf(std::max(some, kMostBudgetGroups));
      if (some <= kMostBudgetGroups) break;
    }
    for (const std::set<size_t>& group : groups) out_.nodes_read += group.size();
    return groups;
  }
  // Of that many nodes, spread over the step.
  std::vector<std::set<size_t>> GroupsOf(size_t some) const {
    const size_t most = most_rows_ / std::max<size_t>(1, out_.grid.count);
    const size_t all = profile_.job.nodes.size();
    std::vector<std::set<size_t>> out;
    size_t tasks = 0;
    for (size_t k = 0; k < std::min(some, all); ++k) {
      const size_t i = k * all / std::min(some, all);
      const size_t own = std::max<uint32_t>(1, profile_.job.nodes[i].tasks);
      if (out.empty() || tasks + own > most) {
        out.emplace_back();
        tasks = 0;
      }
      out.back().insert(i);
      tasks += own;
    }
    return out;
  }

  void AddCollectives(const StepRank& rank, LeastCollective& least, CollectiveWaits& waits) {
    if (rank.rates.mpi.empty()) {
      ++without_;
      return;
    }
    least.Add(rank.rates);
    waits.Add(rank.who.rank, rank.in_collectives);
    most_calls_ = std::max(most_calls_, rank.collectives);
    least_calls_ = std::min(least_calls_, rank.collectives);
  }

  void AddRank(const StepRank& rank, const LeastCollective& least) {
    const RankRates& rates = rank.rates;
    RankBudget& own = out_.ranks.emplace_back();
    own.who = rank.who;
    own.mpi = !rates.mpi.empty();
    own.in_mpi = FindCpuInMpi(rates);
    Count(rates, own);
    const Row waiting = out_.collectives_split ? least.WaitingOf(rates) : Row();
    const std::vector<Spending> ticks = SpendingOf(rates, own.in_mpi, waiting);
    for (size_t t = 0; t < ticks.size(); ++t) {
      own.budget.Add(ticks[t], out_.grid.Seconds());
      if (!waiting.empty() && t < rates.collective.size()) {
        if (rates.collective[t] > 0) seen_.collective_waiting += waiting[t] * rates.collective[t];
      }
    }
    out_.whole.Add(own.budget);
    NodeOf(rank.who).Add(own.budget);
    for (PhaseTicks& phase : phases_) {
      Budget part;
      for (const auto& [tick, seconds] : phase.ticks) part.Add(ticks[tick], seconds);
      phase.figures.budget.Add(part);
      phase.computing.push_back(part.Share(Spent::kComputing));
    }
  }
  void TakeAwaited(const std::map<uint32_t, double>& awaited, double RankBudget::*to) {
    for (RankBudget& rank : out_.ranks) {
      const auto at = awaited.find(rank.who.rank);
      rank.*to = at == awaited.end() ? 0 : at->second;
    }
  }
  Budget& NodeOf(const StepRows::Who& who) {
    const auto [at, is_new] = nodes_.try_emplace(who.node, out_.nodes.size());
    if (is_new) out_.nodes.push_back({who.node, who.host, 0, {}});
    NodeBudget& node = out_.nodes[at->second];
    ++node.ranks;
    return node.budget;
  }
  void Count(const RankRates& rates, const RankBudget& own) {
    seen_.mpi += own.mpi;
    seen_.polls += own.mpi && own.in_mpi.found && own.in_mpi.polls;
    seen_.blocks += own.mpi && own.in_mpi.found && !own.in_mpi.polls;
    seen_.assumed += own.mpi && !own.in_mpi.found && own.in_mpi.unclear > kClear;
    seen_.mpi_io += !rates.mpi_io.empty();
    seen_.io += !rates.io.empty();
    seen_.blocked += rates.io.empty() && !rates.blocked.empty();
    out_.without_mpi += !own.mpi;
  }

  void Finish(const StepRates::Seen& nodes) {
    std::sort(out_.ranks.begin(), out_.ranks.end(),
              [](const RankBudget& a, const RankBudget& b) { return a.who.rank < b.who.rank; });
    std::sort(out_.nodes.begin(), out_.nodes.end(),
              [](const NodeBudget& a, const NodeBudget& b) { return a.node < b.node; });
    std::vector<double> computing;
    for (const RankBudget& rank : out_.ranks) {
      computing.push_back(rank.budget.Share(Spent::kComputing));
    }
    const bool counted = out_.without_mpi == 0;
    if (counted) out_.efficiency = EfficiencyOf(computing);
    for (PhaseTicks& phase : phases_) {
      if (counted) phase.figures.efficiency = EfficiencyOf(phase.computing);
      out_.phases.push_back(std::move(phase.figures));
    }
    NameSources(nodes);
  }

  // --- What is known from what ---

  Source& SourceOf(Spent kind) { return out_.sources[static_cast<size_t>(kind)]; }
  std::string OfRanks(size_t ranks) const {
    if (ranks == out_.ranks.size()) return "";
    return fmt::format(" (of {} of {} ranks)", ranks, out_.ranks.size());
  }
  void NameSources(const StepRates::Seen& nodes) {
    using enum Certainty;
    NameComputing();
    NameMpi();
    NameIo();
    if (nodes.gpu) {
      SourceOf(Spent::kGpuWaiting) = {
          kEstimated,
          "samples of the GPUs' utilization, while the task did nothing that is known: at most"};
    } else {
      SourceOf(Spent::kGpuWaiting).text = "no GPU was seen; level 3 looks at GPUs";
    }
    NameStolen(nodes);
    SourceOf(Spent::kIdle) = {kEstimated, "what is left: sleep, waiting for what is not counted"};
  }
  void NameComputing() {
    const std::string assumed =
        out_.cpus_told ? "" : "; how many CPUs a task had is not known: 1 is assumed";
    if (seen_.mpi == 0) {
      SourceOf(Spent::kComputing) = {Certainty::kMeasured,
                                     "CPU time of the tasks, with that in MPI, if any" + assumed};
      return;
    }
    std::string text = "CPU time of the tasks outside of calls";
    const auto add = [&](size_t ranks, std::string_view name) {
      if (ranks > 0) text += fmt::format("; {}{}", name, OfRanks(ranks));
    };
    add(seen_.polls, "MPI polls, as the CPU time in it shows");
    add(seen_.blocks, "MPI blocks, as it takes no CPU time");
    add(seen_.assumed, "it is assumed that MPI polls");
    SourceOf(Spent::kComputing) = {
        seen_.assumed == 0 ? Certainty::kMeasured : Certainty::kEstimated, text + assumed};
  }
  void NameMpi() {
    Source& waiting = SourceOf(Spent::kMpiWaiting);
    Source& moving = SourceOf(Spent::kMpiMoving);
    if (seen_.mpi == 0) {
      waiting.text =
          "time in MPI is not known: run with --telemetry-mpi; it is within computing and idle";
      moving.text = "as above";
      return;
    }
    const std::string counted = "calls of MPI counted by libsonde-mpi" + OfRanks(seen_.mpi);
    waiting = {Certainty::kMeasured, counted + ": receives, completion, probes, barriers"};
    if (out_.collectives_split) {
      if (seen_.collective_waiting > 0) waiting.certainty = Certainty::kEstimated;
      waiting.text += "; of other collectives what is above the rank with the least";
    } else if (most_calls_ > 0) {
      waiting.text +=
          ": at least, as not all ranks take part in all collectives, which count as moving";
    }
    moving = {waiting.certainty, counted + ": the rest of the time in them, without MPI-IO"};
  }
  void NameIo() {
    Source& io = SourceOf(Spent::kIo);
    std::string text;
    if (seen_.io > 0) text = "calls for files counted by libsonde-io" + OfRanks(seen_.io);
    if (seen_.mpi_io > 0) {
      text += (text.empty() ? "" : ", ") + std::string("MPI-IO counted by libsonde-mpi");
      text += OfRanks(seen_.mpi_io);
    }
    if (seen_.blocked > 0) {
      text += (text.empty() ? "" : "; else ") + std::string("samples of process states (blocked)");
    }
    if (seen_.io < out_.ranks.size()) text += "; --telemetry-io counts calls";
    if (seen_.io == 0 && seen_.mpi_io == 0 && seen_.blocked == 0) {
      io.text = "time in I/O is not known: run with --telemetry-io; it is within the others";
      return;
    }
    io = {seen_.blocked > 0 ? Certainty::kEstimated : Certainty::kMeasured, std::move(text)};
  }
  void NameStolen(const StepRates::Seen& nodes) {
    std::string text;
    const auto add = [&](bool seen, std::string_view name) {
      if (seen) text += (text.empty() ? "" : ", ") + std::string(name);
    };
    add(nodes.steal, "steal by the host");
    add(nodes.throttled, "the CPU limit");
    add(nodes.pressure, "pressure (waiting for a CPU)");
    add(nodes.node_pressure, "pressure of the whole node");
    if (text.empty()) {
      SourceOf(Spent::kStolen).text = "not known: no steal, CPU limit or pressure in the profile";
      return;
    }
    SourceOf(Spent::kStolen) = {Certainty::kEstimated, text + ", divided by CPU time: at least"};
  }

  const Archive& archive_;
  const std::string& key_;
  const Profile& profile_;
  const size_t most_rows_;  // ticks of ranks
  std::vector<PhaseTicks> phases_;
  std::map<size_t, size_t> nodes_;  // where a node is in out_.nodes, until they are sorted
  Seen seen_;
  size_t without_ = 0;  // ranks without MPI calls
  double most_calls_ = 0;
  double least_calls_ = std::numeric_limits<double>::infinity();
  StepBudget out_;
};

// --- JSON ---

void WriteBudget(const Budget& budget, JsonWriter& json) {
  json.Field("cpu_seconds", budget.whole()).Key("shares").BeginObject();
  for (size_t k = 0; k < kSpentKinds; ++k) {
    const auto kind = static_cast<Spent>(k);
    json.Field(KeyOf(kind), budget.Share(kind));
  }
  json.EndObject();
}

void WriteEfficiency(const Efficiency& efficiency, JsonWriter& json) {
  json.Key("efficiency").BeginObject().Field("load_balance", efficiency.load_balance);
  json.Field("communication", efficiency.communication);
  json.Field("parallel", efficiency.parallel).EndObject();
}

void WriteRank(const RankBudget& rank, JsonWriter& json) {
  json.BeginObject().Field("rank", rank.who.rank).Field("node", rank.who.host);
  json.Key("mpi_polls");
  if (rank.mpi && rank.in_mpi.found) {
    json.Value(rank.in_mpi.polls).Field("cpu_in_mpi", rank.in_mpi.share);
  } else {
    json.Null().Field("cpu_in_mpi", kNoNumber);
  }
  json.Field("awaited_seconds", rank.awaited);
  json.Field("awaited_in_receives_seconds", rank.awaited_in_receives);
  WriteBudget(rank.budget, json);
  json.EndObject();
}

}  // namespace

std::string_view ToString(Certainty certainty) {
  switch (certainty) {
    case Certainty::kMeasured:
      return "measured";
    case Certainty::kEstimated:
      return "estimated";
    case Certainty::kUnknown:
      break;
  }
  return "unknown";
}

Result<StepBudget> BudgetOf(const Archive& archive, const std::string& key, const Profile& profile,
                            size_t most_values) {
  return Budgeting(archive, key, profile, most_values).Make();
}

std::string BudgetToJson(const StepBudget& all, const Profile& profile) {
  std::string out;
  JsonWriter json(out);
  json.BeginObject().Field("step", profile.job.id.ToString()).Field("tick", all.grid.width);
  json.Field("cpus_of_task", all.cpus).Field("cpus_told", all.cpus_told);
  json.Field("nodes_read", all.nodes_read);
  json.Field("ranks_without_mpi", all.without_mpi);
  json.Field("collectives_split", all.collectives_split).Key("kinds").BeginArray();
  for (size_t k = 0; k < kSpentKinds; ++k) {
    json.BeginObject().Field("kind", KeyOf(static_cast<Spent>(k)));
    json.Field("name", NameOf(static_cast<Spent>(k)));
    json.Field("certainty", ToString(all.sources[k].certainty));
    json.Field("known_from", all.sources[k].text).EndObject();
  }
  json.EndArray().Key("whole").BeginObject();
  WriteBudget(all.whole, json);
  WriteEfficiency(all.efficiency, json);
  json.EndObject().Field("phases_told", all.phases_told).Key("phases").BeginArray();
  for (const PhaseBudget& phase : all.phases) {
    json.BeginObject().Field("name", phase.name).Field("begin", phase.begin);
    json.Field("seconds", phase.seconds).Field("intervals", phase.intervals);
    WriteBudget(phase.budget, json);
    WriteEfficiency(phase.efficiency, json);
    json.EndObject();
  }
  json.EndArray().Key("nodes").BeginArray();
  for (const NodeBudget& node : all.nodes) {
    json.BeginObject().Field("node", node.host).Field("ranks", node.ranks);
    WriteBudget(node.budget, json);
    json.EndObject();
  }
  json.EndArray().Key("ranks").BeginArray();
  for (const RankBudget& rank : all.ranks) WriteRank(rank, json);
  json.EndArray().EndObject();
  out += "\n";
  return out;
}

}  // namespace sonde::insight
