// /proc/stat: what the processors did, how busy the scheduler is, and what interrupts brought.
#include <unistd.h>

#include <array>
#include <string>

#include "daemon/collect/os/os_sources.h"

namespace sonde::collect {
namespace {

constexpr MetricDecl kCpu = {"node_cpu_seconds_total",
                             "seconds",
                             MetricType::kCounter,
                             2,
                             Reduction::kSum,
                             "Time all processors of the node spent in a mode; guests count as "
                             "user. Tag mode."};
constexpr MetricDecl kCore = {"node_cpu_core_seconds_total",
                              "seconds",
                              MetricType::kCounter,
                              4,
                              Reduction::kSum,
                              "Time one processor spent in a mode. Tags cpu, mode."};

constexpr std::string_view kModes[] = {"user",   "nice", "system",  "idle",
                                       "iowait", "irq",  "softirq", "steal"};
constexpr size_t kModeCount = std::size(kModes);

struct Single {
  std::string_view key;  // the line's first word
  MetricDecl decl;
};
constexpr Single kSingles[] = {
    {"intr",
     {"node_intr_total", "1", MetricType::kCounter, 2, Reduction::kSum, "Interrupts served."}},
    {"ctxt",
     {"node_context_switches_total", "1", MetricType::kCounter, 2, Reduction::kSum,
      "Context switches."}},
    {"processes",
     {"node_forks_total", "1", MetricType::kCounter, 2, Reduction::kSum,
      "Processes and threads created."}},
    {"procs_running",
     {"node_procs_running", "1", MetricType::kGauge, 2, Reduction::kSum,
      "Threads running or ready to run, on the whole node."}},
    {"procs_blocked",
     {"node_procs_blocked", "1", MetricType::kGauge, 2, Reduction::kSum,
      "Threads waiting for disk or network filesystem I/O, on the whole node."}},
};

constexpr MetricDecl kSoftirqs = {"node_softirqs_total",
                                  "1",
                                  MetricType::kCounter,
                                  2,
                                  Reduction::kSum,
                                  "Soft interrupts: work that timers, the network, disks and the "
                                  "scheduler take from programs. Tag vector."};
// node_exporter's names, in the kernel's order (include/linux/interrupt.h).
constexpr std::string_view kVectors[] = {"hi",           "timer",   "net_tx", "net_rx",  "block",
                                         "block_iopoll", "tasklet", "sched",  "hrtimer", "rcu"};

constexpr size_t kForksAt = kModeCount + 2;
static_assert(kSingles[kForksAt - kModeCount].key == "processes");
constexpr size_t kSoftirqsAt = kModeCount + std::size(kSingles);
constexpr size_t kCoresAt = kSoftirqsAt + std::size(kVectors);  // first column of the processors
constexpr size_t kMaxCores = 4096;

class CpuSource final : public FileSource {
 public:
  CpuSource(const Roots& roots, int level, ReadBuffer& buffer, double* forks)
      : FileSource(roots.proc + "/stat", Shape::kWhole, 4096, buffer),
        per_core_(level >= kCore.level),
        forks_(forks),
        seconds_per_tick_(1.0 / static_cast<double>(sysconf(_SC_CLK_TCK))) {
    DeclareSeries();
  }

  std::string_view name() const override { return "cpu"; }
  bool counts_from_boot() const override { return true; }
  void Parse(std::string_view text) override {
    if (per_core_ && CoresChanged(text)) DeclareSeries();
    ClearValues();
    size_t core = 0;
    for (Cursor line(text); !line.AtEnd(); line.Line()) {
      if (line.Skip("cpu ")) {
        ReadModes(line, 0);
      } else if (line.Skip("cpu")) {
        if (per_core_ && core < cores_.size()) {
          line.Word();
          ReadModes(line, kCoresAt + kModeCount * core++);
        }
      } else if (line.Skip("softirq ")) {
        line.Number();  // the sum
        for (size_t i = 0; i < std::size(kVectors); ++i) values_[kSoftirqsAt + i] = line.Number();
      } else {
        ReadSingle(line);
      }
    }
    if (forks_ != nullptr) *forks_ = values_[kForksAt];
  }

 private:
  void ReadModes(Cursor& line, size_t column) {
    for (size_t i = 0; i < kModeCount; ++i) values_[column + i] = line.Number() * seconds_per_tick_;
  }
  void ReadSingle(Cursor& line) {
    const std::string_view key = line.Word();
    for (size_t i = 0; i < std::size(kSingles); ++i) {
      if (key == kSingles[i].key) values_[kModeCount + i] = line.Number();
    }
  }
  // Whether other processors are listed than the last time; then cores_ holds the new ones.
  bool CoresChanged(std::string_view text) {
    size_t core = 0;
    bool changed = false;
    for (Cursor line(text); !line.AtEnd() && line.Skip("cpu"); line.Line()) {
      uint64_t id = 0;
      if (line.Skip(" ") || !line.Unsigned(id) || core == kMaxCores) continue;
      if (core == cores_.size()) cores_.push_back(~id);
      changed = changed || cores_[core] != id;
      cores_[core++] = id;
    }
    changed = changed || core != cores_.size();
    cores_.resize(core);
    return changed;
  }
  void DeclareSeries() {
    series_.clear();
    values_.clear();
    for (const std::string_view mode : kModes) AddSeries(kCpu, {{"mode", std::string(mode)}});
    for (const Single& single : kSingles) AddSeries(single.decl);
    for (const std::string_view vector : kVectors) {
      AddSeries(kSoftirqs, {{"vector", std::string(vector)}});
    }
    for (const uint64_t id : cores_) {
      for (const std::string_view mode : kModes) {
        AddSeries(kCore, {{"cpu", std::to_string(id)}, {"mode", std::string(mode)}});
      }
    }
    ++generation_;
  }

  const bool per_core_;
  double* const forks_;
  const double seconds_per_tick_;
  std::vector<uint64_t> cores_;  // in the order of the file
};

}  // namespace

std::unique_ptr<FileSource> MakeCpuSource(const Roots& roots, int level, ReadBuffer& buffer,
                                          double* forks) {
  return std::make_unique<CpuSource>(roots, level, buffer, forks);
}

std::vector<MetricDecl> CpuMetrics() {
  std::vector<MetricDecl> metrics = {kCpu, kCore};
  for (const Single& single : kSingles) metrics.push_back(single.decl);
  metrics.push_back(kSoftirqs);
  return metrics;
}

}  // namespace sonde::collect
