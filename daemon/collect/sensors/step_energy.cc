#include "daemon/collect/sensors/step_energy.h"

#include <algorithm>
#include <cmath>

#include "daemon/collect/read/parse.h"
#include "daemon/collect/sensors/energy.h"

namespace sonde::collect {
namespace {

constexpr MetricDecl kStepEnergy = {
    "node_step_energy_joules_total",
    "joules",
    MetricType::kCounter,
    3,
    Reduction::kSum,
    "Energy of the node's processors and memory that is the step's by its share of the CPU time: "
    "node energy x step CPU time / node CPU time, summed up over intervals of a second."};

bool IsBusyTime(const Series& series) {
  if (series.metric.name != "node_cpu_seconds_total" || series.tags.Find("cpu") != nullptr) {
    return false;
  }
  const std::string* mode = series.tags.Find("mode");
  return mode != nullptr && *mode != "idle" && *mode != "iowait" && *mode != "steal";
}

bool IsTaskTime(const Series& series) { return series.metric.name == "task_cpu_seconds_total"; }

// Packages with their DRAM, or Cray's sums; not what is a part or a sum of these.
bool IsNodeEnergy(const Series& series) {
  if (series.metric.name != kNodeEnergy.name) return false;
  const std::string* domain = series.tags.Find("domain");
  const std::string* source = series.tags.Find("source");
  if (domain == nullptr || source == nullptr) return false;
  if (*source == "cray") return *domain == "cpu" || *domain == "memory";
  if (*source != "rapl" && *source != "perf") return false;
  return domain->starts_with("package") || domain->starts_with("dram");
}

}  // namespace

StepEnergySource::StepEnergySource(const Source& cpu, const Source& tasks,
                                   const std::vector<const Source*>& energy)
    : cpu_{&cpu, {}}, tasks_{&tasks, {}} {
  for (const Source* source : energy) energy_.push_back({source, {}});
}

void StepEnergySource::Sum::Find(Wanted wanted) {
  if (known && generation == source->generation()) return;
  known = true;
  generation = source->generation();
  columns.clear();
  for (size_t i = 0; i < source->series().size(); ++i) {
    if (wanted(source->series()[i])) columns.push_back(i);
  }
}

double StepEnergySource::Sum::Value() const {
  double sum = columns.empty() ? kMissing : 0;
  for (const size_t column : columns) sum += source->values()[column];
  return sum;
}

void StepEnergySource::Update(Nanos now, Nanos interval) {
  cpu_.Find(IsBusyTime);
  tasks_.Find(IsTaskTime);
  double energy = kMissing;
  for (Sum& sum : energy_) {
    sum.Find(IsNodeEnergy);
    const double value = sum.Value();
    if (!std::isnan(value)) energy = std::isnan(energy) ? value : energy + value;
  }
  const double cpu = cpu_.Value();
  const double tasks = tasks_.Value();
  if (std::isnan(energy) || std::isnan(cpu) || std::isnan(tasks)) {
    std::fill(values_.begin(), values_.end(), kMissing);
    return;
  }
  if (values_.empty()) {
    series_.push_back({Metric(kStepEnergy), {}});
    values_.push_back(0);
    ++generation_;
  }
  if (now - last_ < interval && started_) return;
  const double used = energy - last_energy_;
  const double busy = cpu - last_cpu_;
  const double own = tasks - last_tasks_;
  // A meter that was opened anew, or reset, starts an interval.
  if (started_ && used >= 0 && busy > 0 && own >= 0) {
    total_ += used * std::min(own / busy, 1.0);
  }
  values_[0] = total_;
  started_ = true;
  last_ = now;
  last_energy_ = energy;
  last_cpu_ = cpu;
  last_tasks_ = tasks;
}

std::vector<MetricDecl> StepEnergyMetrics() { return {kStepEnergy}; }

}  // namespace sonde::collect
