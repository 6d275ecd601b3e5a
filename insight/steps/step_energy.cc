#include "insight/steps/step_energy.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "insight/robust.h"
#include "insight/steps/step_cpus.h"
#include "insight/steps/step_rows.h"
#include "insight/steps/tick_grid.h"
#include "insight/steps/whole_step.h"
#include "profiles/json/writer.h"

namespace sonde::insight {
namespace {

constexpr std::string_view kEnergy = "node_energy_joules_total";
constexpr std::string_view kPower = "node_power_watts";
constexpr std::string_view kStepCounter = "node_step_energy_joules_total";

// What one meter of a node measures.
enum class Part : unsigned char { kNone, kNode, kMachine, kPackage, kMemory };

Part PartOf(const Series& series) {
  const std::string* domain = series.tags.Find("domain");
  const std::string* source = series.tags.Find("source");
  if (domain == nullptr || source == nullptr) return Part::kNone;
  const bool energy = series.metric.name == kEnergy;
  if (*source == "cray" && energy) {
    if (*domain == "node") return Part::kNode;
    if (*domain == "cpu") return Part::kPackage;
    if (*domain == "memory") return Part::kMemory;
  }
  if (*source == "hwmon" && series.metric.name == kPower && domain->starts_with("power_meter")) {
    return Part::kMachine;
  }
  if ((*source == "rapl" || *source == "perf") && energy) {
    if (domain->starts_with("package")) return Part::kPackage;
    if (domain->starts_with("dram")) return Part::kMemory;
  }
  return Part::kNone;
}

void Add(Row& sum, const Row& row) {
  if (sum.empty()) sum.assign(row.size(), std::nan(""));
  for (size_t t = 0; t < std::min(sum.size(), row.size()); ++t) {
    if (!std::isnan(row[t])) sum[t] = std::isnan(sum[t]) ? row[t] : sum[t] + row[t];
  }
}

// Of the ticks in which `where` has a value; all ticks if `where` is nullptr. NaN: of none.
double Integral(const Row& rate, const Row* where, double tick) {
  double sum = 0;
  bool any = false;
  for (size_t t = 0; t < rate.size(); ++t) {
    if (std::isnan(rate[t]) || (where != nullptr && std::isnan((*where)[t]))) continue;
    sum += rate[t] * tick;
    any = true;
  }
  return any ? sum : std::nan("");
}

void AddTo(double& sum, double value) {
  if (!std::isnan(value)) sum = std::isnan(sum) ? value : sum + value;
}

// Of one node, in watts or CPUs by tick.
struct NodeRows {
  Row node, machine, packages, memory, gpus, busy, tasks;
  double cpus = std::nan("");
};

class EnergyReading {
 public:
  EnergyReading(const Profile& profile, const TickGrid& grid) : profile_(profile), grid_(grid) {
    std::set<std::pair<std::string_view, std::string_view>> meters;
    for (const FootprintEntry& entry : profile.footprint) {
      if (PartOf(entry.series) == Part::kNone) continue;
      const std::string& domain = *entry.series.tags.Find("domain");
      if (!meters.emplace(entry.series.metric.name, domain).second) continue;
      parts_.push_back(PartOf(entry.series));
      asked_.push_back({{entry.series.metric.name, "", "", "domain", domain},
                        RowsBy::kNode,
                        BeforeFirst::kZeroAtItsJoining});
    }
    for (const WatchedSeries& one : kOthers)
      asked_.push_back({one, RowsBy::kNode, BeforeFirst::kZeroAtItsJoining});
  }

  Status Read(const Archive& archive, const std::string& key) {
    auto read = ReadStepRows(archive, key, profile_.job, grid_, asked_);
    if (!read.ok()) return read.status();
    rows_ = *std::move(read);
    nodes_.resize(profile_.job.nodes.size());
    for (size_t m = 0; m < parts_.size(); ++m) {
      Each(m, [&](NodeRows& node, Row& row) { Add(RowOf(node, parts_[m]), row); });
    }
    const size_t others = parts_.size();
    Each(others, [](NodeRows& node, Row& row) { node.gpus = std::move(row); });
    Each(others + 1, [](NodeRows& node, Row& row) { node.busy = std::move(row); });
    Each(others + 2, [](NodeRows& node, Row& row) { node.cpus = std::round(MeanOf(row)); });
    Each(others + 3, [](NodeRows& node, Row& row) { node.tasks = std::move(row); });
    std::vector<double> cpus;
    for (const NodeRows& node : nodes_) cpus.push_back(node.cpus);
    allocated_ = CpusOfNodes(profile_, rows_[others + 4], cpus);
    rows_.clear();
    return {};
  }

  std::vector<NodeEnergy> Take() const {
    std::vector<NodeEnergy> out;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      NodeEnergy one = OfNode(nodes_[i], allocated_[i]);
      one.host = profile_.job.nodes[i].host;
      if (one.meter != EnergyMeter::kNone || !std::isnan(one.gpu_joules)) {
        out.push_back(std::move(one));
      }
    }
    return out;
  }

 private:
  static constexpr WatchedSeries kOthers[] = {
      {"gpu_energy_joules_total", "", ""}, {"node_cpu_seconds_total", "", "", "mode", "busy"},
      {"node_cpu_seconds_total", "", ""},  {"task_cpu_seconds_total", "", ""},
      {"cgroup_cpuset_cpus", "", ""},
  };

  static Row& RowOf(NodeRows& node, Part part) {
    switch (part) {
      case Part::kNode:
        return node.node;
      case Part::kMachine:
        return node.machine;
      case Part::kMemory:
        return node.memory;
      case Part::kNone:
      case Part::kPackage:
        break;
    }
    return node.packages;
  }
  // Each row is seen once, and may be taken.
  template <typename Take>
  void Each(size_t asked, Take take) {
    StepRows& rows = rows_[asked];
    for (size_t r = 0; r < rows.rows.size(); ++r) take(nodes_[rows.who[r].node], rows.rows[r]);
  }

  NodeEnergy OfNode(const NodeRows& rows, double allocated) const {
    NodeEnergy one;
    const double tick = grid_.Seconds();
    one.gpu_joules = Integral(rows.gpus, nullptr, tick);
    Row power;
    if (!rows.node.empty() || !rows.machine.empty()) {
      one.meter = EnergyMeter::kNode;
      one.with_memory = true;
      power = rows.node.empty() ? rows.machine : rows.node;
      for (size_t t = 0; t < std::min(power.size(), rows.gpus.size()); ++t) {
        if (!std::isnan(rows.gpus[t])) power[t] = std::max(0.0, power[t] - rows.gpus[t]);
      }
    } else if (!rows.packages.empty()) {
      one.meter = EnergyMeter::kProcessors;
      one.with_memory = !rows.memory.empty();
      power = rows.packages;
      for (size_t t = 0; t < std::min(power.size(), rows.memory.size()); ++t) {
        power[t] += rows.memory[t];  // a tick without one of both is not known
      }
    }
    if (power.empty()) return one;
    NodeUse& use = one.use;
    use.joules = Integral(power, nullptr, tick);
    for (const double watts : power) use.seconds += std::isnan(watts) ? 0 : tick;
    use.step_cpu = Integral(rows.tasks, &power, tick);
    use.busy_cpu = Integral(rows.busy, &power, tick);
    use.allocated = allocated;
    use.cpus = rows.cpus;
    use.idle = IdlePowerOf(power, rows.busy, rows.cpus);
    one.share = ShareOf(use);
    return one;
  }

  const Profile& profile_;
  const TickGrid& grid_;
  std::vector<Part> parts_;  // of the first of asked_
  std::vector<AskedRows> asked_;
  std::vector<StepRows> rows_;
  std::vector<NodeRows> nodes_;
  std::vector<double> allocated_;
};

double FootprintSum(const Profile& profile, std::string_view metric) {
  double sum = kMissing;
  for (const FootprintEntry& entry : profile.footprint) {
    if (entry.series.metric.name == metric && entry.ticks > 0) AddTo(sum, entry.last);
  }
  return sum;
}

void AddUp(const Profile& profile, StepEnergy& all) {
  all.processor_joules = all.gpu_joules = all.low = all.high = kMissing;
  for (const NodeEnergy& node : all.nodes) {
    AddTo(all.processor_joules, node.share.joules);
    AddTo(all.low, node.share.low);
    AddTo(all.high, node.share.high);
    AddTo(all.gpu_joules, node.gpu_joules);
  }
  if (std::isnan(all.processor_joules)) {
    all.processor_joules = all.low = all.high = FootprintSum(profile, kStepCounter);
  }
  if (std::isnan(all.gpu_joules)) {
    all.gpu_joules = FootprintSum(profile, "gpu_energy_joules_total");
  }
  all.joules = all.processor_joules;
  AddTo(all.joules, all.gpu_joules);
  AddTo(all.low, all.gpu_joules);
  AddTo(all.high, all.gpu_joules);
}

void AddMissing(const Profile& profile, StepEnergy& all) {
  const auto any = [&](auto is) { return std::any_of(all.nodes.begin(), all.nodes.end(), is); };
  const auto metered = static_cast<size_t>(
      std::count_if(all.nodes.begin(), all.nodes.end(), [](const NodeEnergy& node) {
        return node.meter != EnergyMeter::kNone && !std::isnan(node.share.joules);
      }));
  if (metered > 0 && metered < profile.job.nodes.size()) {
    all.missing.push_back(std::to_string(profile.job.nodes.size() - metered) +
                          " nodes, of which no energy is known");
  }
  if (metered == 0 && !std::isnan(all.processor_joules)) {
    all.missing.emplace_back("fans, disks, network and losses of power supplies");
  } else if (metered == 0) {
    all.missing.emplace_back("processors and memory: no meter of theirs could be read");
  }
  if (any([](const NodeEnergy& n) { return n.meter == EnergyMeter::kProcessors; })) {
    if (any([](const NodeEnergy& n) {
          return n.meter == EnergyMeter::kProcessors && !n.with_memory;
        })) {
      all.missing.emplace_back("memory");
    }
    all.missing.emplace_back("fans, disks, network and losses of power supplies");
  }
  all.missing.emplace_back("switches, storage servers and cooling");
}

void AddFigures(const Profile& profile, StepEnergy& all) {
  constexpr std::string_view kSlash = "/s";
  for (const Figure& figure : profile.job.figures) {
    if (!(figure.value > 0) || !(all.joules > 0)) continue;
    FigureEnergy& one = all.figures.emplace_back();
    one.name = figure.name;
    one.unit = figure.unit;
    one.value = figure.value;
    const bool speed = IsPerSecond(figure.unit);
    if (speed && one.unit.ends_with(kSlash)) one.unit.resize(one.unit.size() - kSlash.size());
    one.joules_per_unit = (speed ? all.mean_watts : all.joules) / figure.value;
    one.units_per_kwh = kJoulesPerKwh / one.joules_per_unit;
  }
}

}  // namespace

std::string_view ToString(EnergyMeter meter) {
  switch (meter) {
    case EnergyMeter::kNone:
      break;
    case EnergyMeter::kNode:
      return "node";
    case EnergyMeter::kProcessors:
      return "processors";
  }
  return "none";
}

Result<StepEnergy> EnergyOf(const Archive& archive, const std::string& key, const Profile& profile,
                            const CarbonOptions& carbon) {
  StepEnergy all;
  const TickGrid grid = GridOfRows(profile.job, profile.job.nodes.size(), kMostStepTicks);
  EnergyReading reading(profile, grid);
  SONDE_RETURN_IF_ERROR(reading.Read(archive, key));
  all.nodes = reading.Take();
  AddUp(profile, all);
  all.seconds = static_cast<double>(profile.job.end - profile.job.start) / kSecond;
  all.mean_watts = all.seconds > 0 ? all.joules / all.seconds : kMissing;
  all.joules_per_task =
      profile.job.expected_tasks > 0 ? all.joules / profile.job.expected_tasks : kMissing;
  if (std::isnan(all.joules)) {
    all.no_energy = profile.job.level < 3
                        ? "Energy is measured from level 3 on."
                        : "No meter of its nodes could be read: `sonde doctor` on a node says "
                          "which there are, and docs/counters.md who may read them.";
    return all;
  }
  AddMissing(profile, all);
  AddFigures(profile, all);
  if (carbon.grams_per_kwh && carbon.pue) {
    all.carbon_grams = CarbonGrams(all.joules, *carbon.pue, *carbon.grams_per_kwh);
  }
  return all;
}

std::string EnergyToJson(const StepEnergy& all, const Profile& profile) {
  std::string out;
  JsonWriter json(out);
  json.BeginObject().Field("step", profile.job.id.ToString()).Field("joules", all.joules);
  json.Field("no_energy", all.no_energy);
  json.Field("low_joules", all.low).Field("high_joules", all.high);
  json.Field("processor_joules", all.processor_joules).Field("gpu_joules", all.gpu_joules);
  json.Field("seconds", all.seconds).Field("mean_watts", all.mean_watts);
  json.Field("joules_per_task", all.joules_per_task);
  json.Field("carbon_grams", all.carbon_grams.value_or(kMissing)).Key("nodes").BeginArray();
  for (const NodeEnergy& node : all.nodes) {
    json.BeginObject().Field("host", node.host).Field("meter", ToString(node.meter));
    json.Field("node_joules", node.meter == EnergyMeter::kNone ? kMissing : node.use.joules);
    json.Field("joules", node.share.joules).Field("low_joules", node.share.low);
    json.Field("high_joules", node.share.high).Field("idle_joules", node.share.idle);
    json.Field("whole_node", node.share.whole_node).Field("gpu_joules", node.gpu_joules);
    json.Field("seconds", node.use.seconds).Field("idle_watts", node.use.idle.watts);
    json.Field("step_cpu_seconds", node.use.step_cpu).Field("busy_cpu_seconds", node.use.busy_cpu);
    json.Field("allocated_cpus", node.use.allocated).Field("cpus", node.use.cpus).EndObject();
  }
  json.EndArray().Key("figures").BeginArray();
  for (const FigureEnergy& one : all.figures) {
    json.BeginObject().Field("name", one.name).Field("unit", one.unit).Field("value", one.value);
    json.Field("joules_per_unit", one.joules_per_unit);
    json.Field("units_per_kwh", one.units_per_kwh).EndObject();
  }
  json.EndArray().Key("missing").BeginArray();
  for (const std::string& what : all.missing) json.Value(what);
  json.EndArray().EndObject();
  out += "\n";
  return out;
}

}  // namespace sonde::insight
