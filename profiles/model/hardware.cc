#include "profiles/model/hardware.h"

#include <fmt/core.h>

#include <cmath>
#include <string_view>

#include "profiles/model/summary.h"
#include "profiles/model/text.h"

namespace sonde {
namespace {

// The sum over a metric's series of what `of` takes from each; NaN if there is none.
template <typename Of>
double Sum(const Profile& profile, std::string_view metric, Of of) {
  double sum = kMissing;
  for (const FootprintEntry& e : profile.footprint) {
    const double value = of(e);
    if (e.series.metric.name != metric || std::isnan(value)) continue;
    sum = std::isnan(sum) ? value : sum + value;
  }
  return sum;
}
double SumAtEnd(const Profile& profile, std::string_view metric) {
  return Sum(profile, metric, [](const FootprintEntry& e) { return e.last; });
}
double SumOfMeans(const Profile& profile, std::string_view metric) {
  return Sum(profile, metric, [](const FootprintEntry& e) { return e.mean; });
}

const FootprintEntry* Find(const Profile& profile, std::string_view metric) {
  for (const FootprintEntry& e : profile.footprint) {
    if (e.series.metric.name == metric) return &e;
  }
  return nullptr;
}

void SummarizeGpus(const Profile& profile, HardwareSummary& s) {
  s.gpu_memory_peak = kMissing;
  double busy = 0;
  for (const FootprintEntry& e : profile.footprint) {
    const std::string& name = e.series.metric.name;
    if (name == "gpu_utilization_ratio" && !std::isnan(e.mean)) {
      ++s.gpus;
      busy += e.mean;
    }
    if (name == "gpu_memory_used_bytes" && !(e.max <= s.gpu_memory_peak)) {
      s.gpu_memory_peak = e.max;
      const std::string* gpu = e.series.tags.Find("gpu");
      const std::string host = OwnerName(e.max_owner, profile.job);
      s.gpu_memory_by = gpu == nullptr ? host
                        : host.empty() ? "GPU " + *gpu
                                       : fmt::format("GPU {} of {}", *gpu, host);
    }
  }
  s.gpu_utilization = s.gpus > 0 ? busy / static_cast<double>(s.gpus) : kMissing;
  s.gpu_watts = SumOfMeans(profile, "gpu_power_watts");
  s.gpu_joules = SumAtEnd(profile, "gpu_energy_joules_total");
}

// The parts that were measured, with commas between.
class Parts {
 public:
  void Add(double value, const std::string& text) {
    if (std::isnan(value)) return;
    if (!text_.empty()) text_ += ", ";
    text_ += text;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace

HardwareSummary SummarizeHardware(const Profile& profile) {
  HardwareSummary s;
  const double cycles = SumAtEnd(profile, "task_perf_cycles_total");
  s.instructions_per_cycle = SumAtEnd(profile, "task_perf_instructions_total") / cycles;
  s.hertz = cycles / SumAtEnd(profile, "task_perf_task_clock_seconds_total");
  s.least = s.most = kMissing;
  if (const FootprintEntry* ipc = Find(profile, "task_instructions_per_cycle")) {
    s.least = ipc->min;
    s.most = ipc->max;
    s.least_by = OwnerName(ipc->min_owner, profile.job);
    s.most_by = OwnerName(ipc->max_owner, profile.job);
  }
  s.flops_per_second = SumOfMeans(profile, "task_flops_per_second");
  s.memory_bytes_per_second = SumOfMeans(profile, "task_memory_bytes_per_second");
  s.arithmetic_intensity = s.flops_per_second / s.memory_bytes_per_second;
  s.vector_ratio = SumOfMeans(profile, "task_vector_flops_ratio");
  s.step_joules = SumAtEnd(profile, "node_step_energy_joules_total");
  SummarizeGpus(profile, s);
  return s;
}

std::vector<std::pair<std::string, std::string>> HardwareLines(const HardwareSummary& s) {
  std::vector<std::pair<std::string, std::string>> lines;
  const auto add = [&](std::string label, const std::string& text) {
    if (text.empty()) return;
    lines.emplace_back(std::move(label), text);
  };
  Parts cores;
  cores.Add(s.instructions_per_cycle,
            fmt::format("{} instructions per cycle", text::Number(s.instructions_per_cycle)));
  cores.Add(s.hertz, text::Value(s.hertz, "hertz"));
  std::string work;
  if (!std::isnan(s.flops_per_second)) {
    work = text::Value(s.flops_per_second, "flops_per_second");
    if (!std::isnan(s.vector_ratio))
      work += fmt::format(" ({} vector)", text::Percent(s.vector_ratio));
  }
  cores.Add(s.flops_per_second, work);
  cores.Add(s.memory_bytes_per_second,
            text::Value(s.memory_bytes_per_second, "bytes_per_second") + " from memory");
  cores.Add(s.arithmetic_intensity, text::Number(s.arithmetic_intensity) + " FLOP per byte");
  add("Counters", cores.text());
  if (!cores.text().empty() && s.least_by != s.most_by && s.least < s.most) {
    lines.emplace_back("", fmt::format("instructions per cycle at least {} on {}, at most {} on {}",
                                       text::Number(s.least), text::Printable(s.least_by),
                                       text::Number(s.most), text::Printable(s.most_by)));
  }
  Parts gpus;
  gpus.Add(s.gpu_utilization, text::Percent(s.gpu_utilization) + " busy");
  gpus.Add(s.gpu_memory_peak,
           fmt::format("at most {} of memory{}", text::Bytes(s.gpu_memory_peak),
                       s.gpu_memory_by.empty() ? "" : " on " + text::Printable(s.gpu_memory_by)));
  gpus.Add(s.gpu_watts, text::Value(s.gpu_watts, "watts"));
  add("GPUs", gpus.text());
  Parts energy;
  energy.Add(s.step_joules,
             text::Value(s.step_joules, "joules") + " of processors and memory (the step's share)");
  energy.Add(s.gpu_joules, text::Value(s.gpu_joules, "joules") + " of GPUs");
  add("Energy", energy.text());
  return lines;
}

}  // namespace sonde
