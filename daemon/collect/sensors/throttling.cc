// How often the processors were slowed down for their temperature.
//
// Threads of one core count its throttling each, and all processors of a package that of the
// package; so the first of each is read. Both are of Intel's processors alone.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include "daemon/collect/read/directory.h"
#include "daemon/collect/sensors/hwmon.h"
#include "daemon/collect/sensors/processors.h"
#include "daemon/collect/sensors/sensor.h"
#include "daemon/collect/sensors/sensor_sources.h"

namespace sonde::collect {
namespace {

constexpr MetricDecl DeclareCounter(std::string_view name, std::string_view unit, uint8_t level,
                                    std::string_view help) {
  return {name, unit, MetricType::kCounter, level, Reduction::kSum, help};
}

// A file of cpu*/thermal_throttle. The names of the counts are node_exporter's.
struct ThrottleFile {
  MetricDecl decl;
  std::string_view name;
  std::string_view siblings;  // lists the processors that count the same
  double scale;
};
constexpr ThrottleFile kThrottleFiles[] = {
    {DeclareCounter("node_cpu_core_throttles_total", "1", 2,
                    "Times a core was slowed down for its temperature; all cores together."),
     "core_throttle_count", "thread_siblings_list", 1},
    {DeclareCounter("node_cpu_package_throttles_total", "1", 2,
                    "Times a package was slowed down for its temperature; all together."),
     "package_throttle_count", "core_siblings_list", 1},
    {DeclareCounter("node_cpu_core_throttle_seconds_total", "seconds", 4,
                    "Time in which a core was slowed down for its temperature; all together."),
     "core_throttle_total_time_ms", "thread_siblings_list", 1e-3},
    {DeclareCounter("node_cpu_package_throttle_seconds_total", "seconds", 4,
                    "Time in which a package was slowed down for its temperature; all together."),
     "package_throttle_total_time_ms", "core_siblings_list", 1e-3},
};

// Files that are looked for once: a processor keeps its number, and its files come back with it.
class ThrottlingSource final : public Source {
 public:
  ThrottlingSource(const Roots& roots, int level, ReadBuffer& buffer)
      : roots_(roots), level_(level), buffer_(buffer) {}

  std::string_view name() const override { return "throttling"; }
  Group group() const override { return Group::kOs; }
  bool counts_from_boot() const override { return true; }
  void Sample(Nanos now) override {
    if (now < read_at_) return;
    read_at_ = now + kSensorPeriod;
    const bool first = !std::exchange(scanned_, true);
    if (first) Scan();
    std::fill(values_.begin(), values_.end(), kMissing);
    for (Count& count : counts_) {
      const double value = ParseSensor(count.reader.Read(buffer_, now));
      if (!(value >= 0)) continue;
      double& total = totals_[count.column];
      // A processor that comes later, or was away, had counted before.
      if (first || value > count.last) total += first ? value : value - count.last;
      count.last = value;
      values_[count.column] = 0;  // at least one could be read
    }
    for (size_t i = 0; i < values_.size(); ++i) {
      if (!std::isnan(values_[i])) values_[i] = totals_[i] * scales_[i];
    }
  }

 private:
  struct Count {
    FileReader reader;
    size_t column;
    double last = kMissing;
  };

  void Scan() {
    const std::vector<Processor> processors = ListProcessors(roots_);
    for (const ThrottleFile& file : kThrottleFiles) {
      if (file.decl.level > level_) continue;
      const size_t before = counts_.size();
      for (const Processor& p : processors) {
        std::string path = fmt::format("{}/thermal_throttle/{}", p.directory, file.name);
        std::error_code error;
        if (!std::filesystem::exists(path, error) || !IsFirst(p, file.siblings)) continue;
        counts_.push_back(
            {FileReader(std::move(path), Shape::kWhole, kNumberSize), series_.size()});
      }
      if (counts_.size() == before) continue;
      series_.emplace_back().metric = Metric(file.decl);
      scales_.push_back(file.scale);
    }
    values_.assign(series_.size(), kMissing);
    totals_.assign(series_.size(), 0);
    ++generation_;
  }
  // Lists are like "3,131" and "0-63,128-191". Without one, a processor is taken to be alone.
  bool IsFirst(const Processor& p, std::string_view siblings) {
    const std::string list =
        FirstLine(fmt::format("{}/topology/{}", p.directory, siblings), buffer_);
    uint64_t lowest = 0;
    return !Cursor(list).Unsigned(lowest) || lowest == p.number;
  }

  const Roots roots_;
  const int level_;
  ReadBuffer& buffer_;
  std::vector<Count> counts_;
  std::vector<double> totals_;  // by column, as the kernel counts
  std::vector<double> scales_;  // by column, to the metric's unit
  bool scanned_ = false;
  Nanos read_at_ = 0;
};

}  // namespace

std::unique_ptr<Source> MakeThrottlingSource(const Roots& roots, int level, ReadBuffer& buffer) {
  return std::make_unique<ThrottlingSource>(roots, level, buffer);
}

std::vector<MetricDecl> ThrottlingMetrics() {
  std::vector<MetricDecl> metrics;
  for (const ThrottleFile& file : kThrottleFiles) metrics.push_back(file.decl);
  return metrics;
}

}  // namespace sonde::collect
