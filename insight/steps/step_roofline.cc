#include "insight/steps/step_roofline.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <utility>

#include "insight/robust.h"
#include "insight/steps/step_cpus.h"
#include "insight/steps/step_phases.h"
#include "insight/steps/step_rows.h"
#include "insight/steps/whole_step.h"
#include "profiles/json/writer.h"
#include "profiles/model/shown_series.h"

namespace sonde::insight {
namespace {

constexpr std::string_view kFlops = "task_flops_per_second";
constexpr std::string_view kReads = "task_memory_bytes_per_second";
constexpr std::string_view kTraffic = "node_memory_traffic_bytes_total";
constexpr std::string_view kProcessor = "node_processor_info";
constexpr std::string_view kOfSondeRun = "run-";  // which has all that the machine has
constexpr std::string_view kGpus = "gpu_utilization_ratio";

const std::vector<std::string>& Metrics() {
  static const std::vector<std::string> metrics = {
      std::string(kFlops),           std::string(kReads),
      std::string(kTraffic),         "task_cpu_seconds_total",
      "mpi_seconds_total",           "cgroup_pressure_io_stalled_seconds_total",
      "task_major_faults_total",     std::string(kGpus),
      "task_instructions_per_cycle", "task_cache_miss_ratio",
      "task_memory_stall_ratio",
  };
  return metrics;
}

size_t CountOf(const Profile& profile, std::string_view metric) {
  return static_cast<size_t>(std::count_if(
      profile.footprint.begin(), profile.footprint.end(), [&](const FootprintEntry& entry) {
        return entry.series.metric.name == metric && entry.ticks > 0;
      }));
}

uint32_t NumberIn(const Series& series, std::string_view tag) {
  const std::string* text = series.tags.Find(tag);
  uint32_t value = 0;
  if (text != nullptr) std::from_chars(text->data(), text->data() + text->size(), value);
  return value;
}

// By host.
Result<std::map<std::string, ProcessorType>> TypesOf(const Archive& archive,
                                                     const std::string& key) {
  const auto data = archive.Read(
      key, SeriesScope::kNodes,
      SeriesWanted([](const Metric& metric) { return metric.name == kProcessor; }, nullptr), 0,
      std::numeric_limits<Nanos>::max(), Thinned::kMean);
  if (!data.ok()) return data.status();
  std::map<std::string, ProcessorType> types;
  for (const SeriesData& one : *data) {
    const std::string* host = one.series.tags.Find("host");
    const std::string* model = one.series.tags.Find("model");
    if (host == nullptr || model == nullptr) continue;
    types[*host] = {*model, NumberIn(one.series, "cpus"), NumberIn(one.series, "sockets"),
                    NumberIn(one.series, "megahertz")};
  }
  return types;
}

const NodePeaks* PeaksOf(std::span<const NodePeaks> peaks, const ProcessorType* type,
                         const std::string& host) {
  const NodePeaks* found = nullptr;
  for (const NodePeaks& one : peaks) {
    if (type != nullptr ? one.type != *type : one.host.empty() || one.host != host) continue;
    if (found == nullptr || one.allowed >= found->allowed) found = &one;
  }
  return found;
}

class Building {
 public:
  Building(const Archive& archive, const std::string& key, const Profile& profile)
      : archive_(archive), key_(key), profile_(profile) {}

  Status FindCpus() {
    const TickGrid grid = GridOfRows(profile_.job, profile_.job.nodes.size(), kMostStepTicks);
    const AskedRows asked[] = {
        {{"cgroup_cpuset_cpus", "", ""}, RowsBy::kNode},
        {{"node_cpu_seconds_total", "", ""}, RowsBy::kNode},
    };
    const auto rows = ReadStepRows(archive_, key_, profile_.job, grid, asked);
    if (!rows.ok()) return rows.status();
    std::vector<double> of_node(profile_.job.nodes.size(), std::nan(""));
    for (size_t r = 0; r < (*rows)[1].rows.size(); ++r) {
      of_node[(*rows)[1].who[r].node] = std::round(MeanOf((*rows)[1].rows[r]));
    }
    cpus_ = CpusOfNodes(profile_, (*rows)[0], of_node);
    bool assumed = false;
    for (size_t i = 0; i < cpus_.size(); ++i) {
      if (!std::isnan(cpus_[i])) continue;
      cpus_[i] = of_node[i];
      assumed = true;
    }
    if (assumed && !profile_.job.id.job.starts_with(kOfSondeRun)) {
      out_.notes.emplace_back(
          "how many CPUs the step had is not known: the roof is that of whole nodes");
    }
    out_.cpus = cpus_.empty() ? std::nan("") : 0;
    for (const double cpus : cpus_) out_.cpus += cpus;
    return {};
  }

  Status FindRoof(std::span<const NodePeaks> peaks) {
    const auto types = TypesOf(archive_, key_);
    if (!types.ok()) return types.status();
    Roof roof;
    for (size_t i = 0; i < profile_.job.nodes.size(); ++i) {
      const std::string host = HostOfNode(profile_.job, static_cast<uint32_t>(i));
      const auto type = types->find(host);
      const ProcessorType* const known = type == types->end() ? nullptr : &type->second;
      if (known != nullptr && std::ranges::find(out_.types, *known) == out_.types.end()) {
        out_.types.push_back(*known);
      }
      const NodePeaks* const of_node = PeaksOf(peaks, known, host);
      if (of_node == nullptr) {
        SayNoRoof(known, host);
        continue;
      }
      const auto part = RoofOf(*of_node, cpus_[i]);
      if (part.ok()) {
        roof = roof + *part;
      } else if (out_.no_roof.empty()) {
        out_.no_roof = "no roof for " + host + ": " + std::string(part.status().message());
      }
    }
    if (profile_.job.nodes.empty()) out_.no_roof = "the profile has no nodes";
    if (out_.no_roof.empty()) out_.roof = roof;
    return {};
  }

  Status PlaceAll() {
    const auto all = PhasesWith(archive_, key_, profile_, Metrics());
    if (!all.ok()) return all.status();
    for (size_t c = 0; c < all->columns.size(); ++c) column_of_[all->columns[c].metric] = c;
    out_.with_writes = column_of_.contains(std::string(kTraffic));
    out_.counted = column_of_.contains(std::string(kFlops)) &&
                   (out_.with_writes || column_of_.contains(std::string(kReads)));
    std::vector<StepColumn> columns;
    std::vector<std::vector<double>> rows;
    SONDE_RETURN_IF_ERROR(
        ReadWholeStep(archive_, key_, profile_, all->grid, Metrics(), columns, rows));
    PhaseFigures whole;
    whole.name = "the step";
    whole.seconds = static_cast<double>(profile_.job.end - profile_.job.start) / kSecond;
    for (const std::vector<double>& row : rows) whole.means.push_back(MeanOf(row));
    out_.step = PhaseOf(whole);
    out_.told = !all->told.empty();
    const std::vector<PhaseFigures>& phases = out_.told ? all->told : all->found;
    if (!out_.told && phases.size() < 2) return {};
    for (const PhaseFigures& phase : phases) out_.phases.push_back(PhaseOf(phase));
    return {};
  }

  StepRoofline Take() {
    if (!out_.counted) {
      out_.notes.emplace_back(WhyNotCounted());
    } else if (!out_.with_writes) {
      out_.notes.emplace_back(
          "bytes are those read from memory, without what was written: the true intensity is "
          "lower");
    }
    return std::move(out_);
  }

 private:
  void SayNoRoof(const ProcessorType* type, const std::string& host) {
    if (!out_.no_roof.empty()) return;
    out_.no_roof = "the peaks of " +
                   (type != nullptr ? type->ToString() : "the processors of " + host) +
                   " were not measured: run `sonde peaks` on such a node, with all its CPUs";
  }
  std::string WhyNotCounted() const {
    if (profile_.job.level < 3) {
      return "hardware counters are read from level 3 on: no FLOP and no bytes were counted";
    }
    return "no FLOP, or no bytes from memory, were counted: the processor, the virtual machine or "
           "the kernel's settings do not give these counters (`sonde events` says which on a node)";
  }
  double Mean(const PhaseFigures& phase, std::string_view metric) const {
    const auto column = column_of_.find(std::string(metric));
    return column == column_of_.end() ? std::nan("") : phase.means[column->second];
  }
  RooflinePhase PhaseOf(const PhaseFigures& phase) const {
    RooflinePhase out;
    out.name = phase.name;
    out.seconds = phase.seconds;
    if (out_.counted) {
      out.placed = PlaceUnder(Mean(phase, kFlops),
                              Mean(phase, out_.with_writes ? kTraffic : kReads), out_.roof);
    }
    Evidence& e = out.evidence;
    e.cpus = out_.cpus;
    e.busy_cpus = Mean(phase, "task_cpu_seconds_total");
    e.mpi_cpus = Mean(phase, "mpi_seconds_total");
    e.io_pressure = Mean(phase, "cgroup_pressure_io_stalled_seconds_total");
    e.faults = Mean(phase, "task_major_faults_total");
    // Columns of several series are their sum.
    const size_t gpus = CountOf(profile_, kGpus);
    if (gpus > 0) e.gpu_utilization = Mean(phase, kGpus) / static_cast<double>(gpus);
    e.instructions_per_cycle = Mean(phase, "task_instructions_per_cycle");
    e.cache_miss_ratio = Mean(phase, "task_cache_miss_ratio");
    e.memory_stall_ratio = Mean(phase, "task_memory_stall_ratio");
    out.bottleneck = BottleneckOf(e);
    return out;
  }

  const Archive& archive_;
  const std::string& key_;
  const Profile& profile_;
  StepRoofline out_;
  std::vector<double> cpus_;  // by node
  std::map<std::string, size_t> column_of_;
};

void WritePhase(JsonWriter& json, const RooflinePhase& phase) {
  const Placed& p = phase.placed;
  const Evidence& e = phase.evidence;
  json.BeginObject().Field("name", phase.name).Field("seconds", phase.seconds);
  json.Field("flops_per_second", p.flops).Field("bytes_per_second", p.bytes_per_second);
  json.Field("intensity", p.intensity).Field("attainable_flops_per_second", p.attainable);
  json.Field("share", p.share).Field("bound", ToString(p.bound));
  json.Field("busy_cpus", e.busy_cpus).Field("mpi_cpus", e.mpi_cpus);
  json.Field("io_stalled_ratio", e.io_pressure).Field("major_faults_per_second", e.faults);
  json.Field("gpu_utilization", e.gpu_utilization);
  json.Field("instructions_per_cycle", e.instructions_per_cycle);
  json.Field("cache_miss_ratio", e.cache_miss_ratio);
  json.Field("memory_stall_ratio", e.memory_stall_ratio);
  json.Field("bottleneck", phase.bottleneck.what).Field("why", phase.bottleneck.why).EndObject();
}

}  // namespace

Result<StepRoofline> RooflineOf(const Archive& archive, const std::string& key,
                                const Profile& profile, std::span<const NodePeaks> peaks) {
  Building building(archive, key, profile);
  SONDE_RETURN_IF_ERROR(building.FindCpus());
  SONDE_RETURN_IF_ERROR(building.FindRoof(peaks));
  SONDE_RETURN_IF_ERROR(building.PlaceAll());
  return building.Take();
}

std::string RooflineToJson(const StepRoofline& all, const Profile& profile) {
  std::string out;
  JsonWriter json(out);
  json.BeginObject().Field("step", profile.job.id.ToString()).Field("counted", all.counted);
  json.Field("with_writes", all.with_writes).Field("cpus", all.cpus).Key("roof");
  if (all.roof.flops > 0) {
    json.BeginObject().Field("flops_per_second", all.roof.flops);
    json.Field("single_flops_per_second", all.roof.single_flops);
    json.Field("bytes_per_second", all.roof.bytes_per_second);
    json.Field("ridge", all.roof.Ridge()).EndObject();
  } else {
    json.Null();
  }
  json.Field("no_roof", all.no_roof).Key("processors").BeginArray();
  for (const ProcessorType& type : all.types) json.Value(type.ToString());
  json.EndArray().Key("whole");
  WritePhase(json, all.step);
  json.Field("told", all.told).Key("phases").BeginArray();
  for (const RooflinePhase& phase : all.phases) WritePhase(json, phase);
  json.EndArray().Key("notes").BeginArray();
  for (const std::string& note : all.notes) json.Value(note);
  json.EndArray().EndObject();
  out += "\n";
  return out;
}

}  // namespace sonde::insight
