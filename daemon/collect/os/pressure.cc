// /proc/pressure: how long processes waited for processors, disks and memory (PSI).
//
// "some": at least one process waited; "full": all that were not idle did. Kernels before 4.20, and
// those booted with psi=0, do not have it: the values are missing.
#include "daemon/collect/os/os_sources.h"

namespace sonde::collect {
namespace {

// The names are node_exporter's.
constexpr MetricDecl kCpuWaiting = {"node_pressure_cpu_waiting_seconds_total",
                                    "seconds",
                                    MetricType::kCounter,
                                    2,
                                    Reduction::kMean,
                                    "Time in which some process waited for a processor."};
constexpr MetricDecl kIoWaiting = {"node_pressure_io_waiting_seconds_total",
                                   "seconds",
                                   MetricType::kCounter,
                                   2,
                                   Reduction::kMean,
                                   "Time in which some process waited for I/O."};
constexpr MetricDecl kIoStalled = {"node_pressure_io_stalled_seconds_total",
                                   "seconds",
                                   MetricType::kCounter,
                                   2,
                                   Reduction::kMean,
                                   "Time in which no process got on for waiting for I/O."};
constexpr MetricDecl kMemoryWaiting = {"node_pressure_memory_waiting_seconds_total",
                                       "seconds",
                                       MetricType::kCounter,
                                       2,
                                       Reduction::kMean,
                                       "Time in which some process waited for memory."};
constexpr MetricDecl kMemoryStalled = {"node_pressure_memory_stalled_seconds_total",
                                       "seconds",
                                       MetricType::kCounter,
                                       2,
                                       Reduction::kMean,
                                       "Time in which no process got on for waiting for memory."};

struct File {
  std::string_view name;
  std::string_view path;
  const MetricDecl* some;
  const MetricDecl* full;  // nullptr: it means nothing for a whole machine
};
constexpr File kFiles[] = {
    {"pressure_cpu", "/pressure/cpu", &kCpuWaiting, nullptr},
    {"pressure_io", "/pressure/io", &kIoWaiting, &kIoStalled},
    {"pressure_memory", "/pressure/memory", &kMemoryWaiting, &kMemoryStalled},
};

constexpr std::string_view kTotal = " total=";

class PressureSource final : public FileSource {
 public:
  PressureSource(const Roots& roots, const File& file, ReadBuffer& buffer)
      : FileSource(roots.proc + std::string(file.path), Shape::kWhole, 256, buffer), file_(file) {
    AddSeries(*file.some);
    if (file.full != nullptr) AddSeries(*file.full);
  }

  std::string_view name() const override { return file_.name; }
  bool counts_from_boot() const override { return true; }
  void Parse(std::string_view text) override {
    ClearValues();
    for (Cursor at(text); !at.AtEnd();) {
      const std::string_view line = at.Line();
      const size_t column = line.starts_with("some ") ? 0 : line.starts_with("full ") ? 1 : 2;
      const size_t total = line.rfind(kTotal);
      if (column >= values_.size() || total == std::string_view::npos) continue;
      values_[column] = Cursor(line.substr(total + kTotal.size())).Number() / 1e6;
    }
  }

 private:
  const File& file_;
};

}  // namespace

std::unique_ptr<FileSource> MakePressureSource(const Roots& roots, Pressure what,
                                               ReadBuffer& buffer) {
  return std::make_unique<PressureSource>(roots, kFiles[static_cast<size_t>(what)], buffer);
}

std::vector<MetricDecl> PressureMetrics() {
  return {kCpuWaiting, kIoWaiting, kIoStalled, kMemoryWaiting, kMemoryStalled};
}

}  // namespace sonde::collect
