#include "tests/web/made_conclusions.h"

#include <array>
#include <cmath>

#include "insight/hardware/roofline.h"
#include "insight/steps/step_budget.h"
#include "insight/steps/step_energy.h"
#include "insight/steps/step_roofline.h"

namespace sonde::web {
namespace {

constexpr size_t kNodesRead = 64;  // as of a large step

// In the order of insight::Spent.
insight::Budget BudgetOf(double computing, double waiting, double moving, double io, double stolen,
                         double seconds) {
  insight::Budget budget;
  const double idle = 1 - computing - waiting - moving - io - stolen;
  budget.Add({{computing, waiting, moving, io, std::nan(""), stolen, idle}, 1}, seconds);
  return budget;
}

std::string Budget(const Profile& profile, size_t slow, size_t ranks) {
  insight::StepBudget all;
  all.grid.width = kSecond;
  const double seconds = static_cast<double>(profile.job.expected_tasks) * 3600;
  all.whole = BudgetOf(0.68, 0.21, 0.06, 0.04, 0, seconds);
  all.efficiency = {0.9, 0.75, 0.68};
  for (insight::Source& source : all.sources) {
    source = {insight::Certainty::kMeasured, "CPU time of the tasks"};
  }
  all.sources[static_cast<size_t>(insight::Spent::kGpuWaiting)] = {
      insight::Certainty::kUnknown, "not known: calls for GPUs are not counted"};
  all.sources[static_cast<size_t>(insight::Spent::kStolen)].certainty =
      insight::Certainty::kEstimated;
  all.phases_told = true;
  for (const Phase& told : profile.moments.phases) {
    insight::PhaseBudget& phase = all.phases.emplace_back();
    phase.name = told.name;
    phase.begin = told.begin;
    phase.seconds = static_cast<double>(told.end - told.begin) / kSecond;
    const bool reads = told.name == "read mesh";
    phase.budget = reads ? BudgetOf(0.2, 0.05, 0.01, 0.7, 0, phase.seconds)
                         : BudgetOf(0.71, 0.22, 0.06, 0.005, 0, phase.seconds);
  }
  all.nodes_read = std::min(profile.job.nodes.size(), kNodesRead);
  for (size_t i = 0; i < all.nodes_read; ++i) {
    const insight::Budget budget = i == slow ? BudgetOf(0.42, 0.1, 0.06, 0.04, 0.37, 7200)
                                             : BudgetOf(0.7, 0.2, 0.06, 0.03, 0, 7200);
    all.nodes.push_back({i, profile.job.nodes[i].host, ranks, budget});
    for (size_t rank = 0; rank < ranks; ++rank) {
      insight::RankBudget& one = all.ranks.emplace_back();
      one.who.node = static_cast<uint32_t>(i);
      one.who.host = profile.job.nodes[i].host;
      one.who.rank = static_cast<uint32_t>(i * ranks + rank);
      one.budget = budget;
      one.awaited = i == slow && rank == 0 ? 0.15 * seconds : 0;
    }
  }
  return insight::BudgetToJson(all, profile);
}

insight::RooflinePhase PhaseAt(const std::string& name, double seconds, double flops, double bytes,
                               const insight::Roof& roof) {
  insight::RooflinePhase phase;
  phase.name = name;
  phase.seconds = seconds;
  phase.placed = insight::PlaceUnder(flops, bytes, roof);
  phase.bottleneck = insight::BottleneckOf(phase.evidence);
  return phase;
}

std::string Roofline(const Profile& profile) {
  insight::StepRoofline all;
  const double nodes = profile.job.expected_nodes;
  all.roof = {2e12 * nodes, 200e9 * nodes, 4e12 * nodes};
  all.cpus = 64 * nodes;
  all.counted = all.told = true;
  all.types = {{"Some CPU", 64, 2, 3000}};
  all.notes = {
      "bytes are those read from memory, without what was written: the true intensity is "
      "lower"};
  all.step = PhaseAt("the step", 3600, 90e9 * nodes, 150e9 * nodes, all.roof);
  all.phases = {PhaseAt("read mesh", 175, 0.5e9 * nodes, 20e9 * nodes, all.roof),
                PhaseAt("time steps", 3320, 95e9 * nodes, 157e9 * nodes, all.roof)};
  return insight::RooflineToJson(all, profile);
}

std::string Energy(const Profile& profile) {
  insight::StepEnergy all;
  for (const NodeInfo& info : profile.job.nodes) {
    insight::NodeEnergy& node = all.nodes.emplace_back();
    node.host = info.host;
    node.meter = insight::EnergyMeter::kProcessors;
    node.share.joules = 1.2e6 + 1e4 * static_cast<double>(info.node_id % 7);
    node.gpu_joules = 8e5;
    all.processor_joules += node.share.joules;
    all.gpu_joules += node.gpu_joules;
  }
  all.joules = all.processor_joules + all.gpu_joules;
  all.low = 0.95 * all.joules;
  all.high = 1.1 * all.joules;
  all.seconds = 3600;
  all.mean_watts = all.joules / all.seconds;
  all.joules_per_task = all.joules / profile.job.expected_tasks;
  all.figures = {{"time steps", "step", 4200, all.joules / 4200, 3.6e6 * 4200 / all.joules}};
  all.missing = {"fans, disks, network and losses of power supplies",
                 "switches, storage servers and cooling"};
  all.carbon_grams = insight::CarbonGrams(all.joules, 1.2, 350);
  return insight::EnergyToJson(all, profile);
}

std::string Stragglers(const Profile& profile, size_t slow, size_t ranks) {
  return R"({"step":"4713.0","metrics":[{"metric":"task_cpu_seconds_total",)"
         R"("name":"CPU","unit":"1","by":"rank","stragglers":[{"rank":)" +
         std::to_string(slow * ranks) + R"(,"node":")" + profile.job.nodes[slow].host +
         R"(","value":0.21,"others":0.71,"from_start":false,"since":)" +
         std::to_string(profile.job.start + 1800 * kSecond) + R"(,"causes":[]}]}]})";
}

}  // namespace

Result<std::string> ConclusionOf(const Profile& profile, const std::string& of, int slow,
                                 int ranks) {
  const auto at = static_cast<size_t>(slow);
  const auto on_node = static_cast<size_t>(ranks);
  if (of == "budget") return Budget(profile, at, on_node);
  if (of == "roofline") return Roofline(profile);
  if (of == "energy") return Energy(profile);
  if (of == "stragglers") return Stragglers(profile, at, on_node);
  if (of == "hints") {
    return R"({"step":"4713.0","hints":[{"name":"mpi_imbalance","kind":"limit","worth":0.2,)"
           R"("says":"Ranks wait for the slowest one.","why":"25 % of the time is spent waiting.",)"
           R"("change":"Look at )" +
           profile.job.nodes[at].host + R"(, or balance the work."}],"facts":{}})";
  }
  if (of == "periods") {
    return std::string(
        R"({"step":"4713.0","tick":1,"metrics":[{"metric":"task_written_bytes_total",)"
        R"("name":"bytes written","unit":"bytes","period_seconds":600,"confidence":0.9},)"
        R"({"metric":"node_load1","name":"load","unit":"1","why_not":"it does not come back"}]})");
  }
  return std::string(R"({"step":"4713.0","tick":1,"columns":[],"told":[],"found":[]})");
}

}  // namespace sonde::web
